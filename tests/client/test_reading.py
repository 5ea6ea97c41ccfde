from tests.fakes.threads import together

MODULES = ("klamm.client.types", "klamm.client.calls")


def test_the_first_answer_of_a_kind_may_be_read_in_several_threads() -> None:
    answer = b'[{"cluster": "a", "kind": "broker", "node_id": 1, "upstream": "b:1", "listening": "k:1"}]'
    together(f"repr(modules[1].brokers().answer(200, {answer!r}))", *MODULES)


def test_the_first_refusal_may_be_read_in_several_threads() -> None:
    refusal = b'{"error": "the rule is wrong", "mistakes": [{"path": "api", "reason": "no such API"}]}'
    together(f"str(modules[1].refusal(422, {refusal!r}))", *MODULES)
