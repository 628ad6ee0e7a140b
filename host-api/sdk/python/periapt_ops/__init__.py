"""What an unmodified `ops` charm needs to run in Periapt's sandbox, where there are no processes, sockets or threads.

At build (`component`), the charm is imported with stand-ins for what WASI lacks (`stand_ins`), everything that it may ever
import is imported (`imports`), and the interpreter's memory becomes the component. In each hook (`charm`) that memory
is there at once, and what charm.py does as a program is done. `location` and `reading` make modules believe that they
lie in `/charm`, where a hook finds them, and `handles` closes what they left open; `storage` keeps StoredState and
deferred events in the hook's commit; `metadata` spares each hook the parsing of its YAML. `host` is the way to the
sandbox. `periapt_packing`, beside the packer, runs natively, before all of that.
"""
