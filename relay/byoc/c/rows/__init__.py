"""How each op becomes C: a function per op, split by kind; `relay.byoc.c.emit` lists them."""
