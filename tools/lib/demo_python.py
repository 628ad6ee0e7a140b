"""The demo's part that is driven by jubilant: what an author's integration test does.

usage: demo_python.py PERIAPT PLACE
"""

import sys

import jubilant


def main(binary: str, place: str) -> None:
    """Deploy two charms, relate them, run actions, and print what they are."""
    juju = jubilant.Juju(cli_binary=binary, wait_timeout=300)
    juju.add_model("shop")
    juju.deploy(f"{place}/python-accounts.charm", "accounts", config={"password-length": 32})
    juju.deploy(f"{place}/python-portal.charm", "portal")
    juju.wait(lambda status: jubilant.all_blocked(status, "portal") and jubilant.all_active(status, "accounts"), delay=0.5)
    print("portal waits to be integrated:", juju.status().apps["portal"].app_status.message)

    juju.integrate("accounts", "portal")
    juju.wait(jubilant.all_active, delay=0.5)
    print(juju.cli("status", "--relations"))

    task = juju.run("portal/0", "show")
    print("portal/0 show:", task.results["page"], sep="\n")
    juju.run("accounts/leader", "replace-password", {"account": "portal-1"})
    print("accounts/leader list:", juju.run("accounts/leader", "list").results)
    try:
        juju.run("accounts/leader", "replace-password", {"account": "nobody"})
    except jubilant.TaskError as error:
        print("an account that is unknown:", error.task.message)


main(*sys.argv[1:])
