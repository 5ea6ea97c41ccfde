from tests.fakes.threads import together

MODULES = ("klamm.proxy.session.rewriting.topology", "klamm.proxy.cluster.nodes.state_file")


def test_the_first_nodes_of_several_clusters_may_be_kept_at_once() -> None:
    node = "modules[0].Node(modules[0].NodeKey('broker', 1), 'broker-1', 9092, 19093)"
    together(f"repr(modules[1].kept_node({node}))", *MODULES)
