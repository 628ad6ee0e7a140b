"""The statements that a program is run by. The packer looks for them before anything is built."""

from __future__ import annotations

import ast


def is_main(statement: ast.stmt) -> bool:
    """Whether a statement is one that a program is run by."""
    if isinstance(statement, ast.If):
        names = {node.id for node in ast.walk(statement.test) if isinstance(node, ast.Name)}
        texts = {node.value for node in ast.walk(statement.test) if isinstance(node, ast.Constant)}
        return "__name__" in names and "__main__" in texts
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        function = statement.value.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        return name == "main"
    return False
