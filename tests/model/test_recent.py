from karpy.model.recent import Recent


def test_a_question_that_was_asked_lately_is_not_worked_on_again() -> None:
    asked: list[dict[str, int]] = []
    recent: Recent[dict[str, int], int] = Recent(2)

    def answer(question: dict[str, int]) -> int:
        def find() -> int:
            asked.append(question)
            return sum(question.values())

        return recent.answer(question, find)

    assert [answer({"a": 1}), answer({"a": 1}), answer({"b": 2}), answer({"a": 1})] == [1, 1, 2, 1]
    assert asked == [{"a": 1}, {"b": 2}]

    answer({"c": 3})
    answer({"a": 1})

    assert asked == [{"a": 1}, {"b": 2}, {"c": 3}, {"a": 1}]
