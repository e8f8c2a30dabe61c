"""What is measured beside this package, each program in a process of its own."""
