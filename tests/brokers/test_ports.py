"""Ports that the tests take: no two test processes take the same."""

import subprocess
import sys

from tests.brokers.processes import LEASED, free_block, free_ports


def test_two_test_processes_take_ports_of_different_leases() -> None:
    program = "from tests.brokers.processes import *; print(free_ports(3), free_block())"
    ours = {free_ports(3) // LEASED, free_block() // LEASED}
    other = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    theirs = {int(port) // LEASED for port in other.stdout.split()}
    assert len(ours) == len(theirs) == 1
    assert ours != theirs


def test_a_process_does_not_take_the_same_port_twice_in_a_row() -> None:
    assert len({free_ports() for _ in range(50)}) == 50
    assert len({free_block() for _ in range(3)}) == 3
