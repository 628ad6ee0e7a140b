#!/usr/bin/env python3
"""Says what pydantic answers, in parts that an action's output can take."""

import cases
import ops

#: Characters that an action prints at most.
MOST = 50_000


class ValidatingCharm(ops.CharmBase):
    def __init__(self, framework: ops.Framework):
        super().__init__(framework)
        framework.observe(self.on.answer_action, self._on_answer)

    def _on_answer(self, event: ops.ActionEvent) -> None:
        text = "\n".join(cases.lines())
        start = event.params["start"]
        event.set_results({"length": len(text)})
        print(text[start : start + MOST], end="")


if __name__ == "__main__":
    ops.main(ValidatingCharm)
