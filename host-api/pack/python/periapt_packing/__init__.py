"""What is done natively before a component is built: dependencies are fetched, and what cannot work is found.

`periapt pack` runs it with the packer's own Python, 3.10 or newer; it uses the standard library and pip alone.
"""
