"""The grammar of operators: read and check the declarations."""
