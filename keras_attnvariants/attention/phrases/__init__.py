"""The parts of phrase attention (Nguyen and Joty 2018).

* `structures`: which heads attend to which n-grams, with which queries;
* `heads`: how a group of heads attends: its keys, values and decoding state;
* `scorings`: how an n-gram is scored, by the queries and keys of a group;
* `scores`: the weights by token and by order.

`attention.banded` makes the n-grams, and the mask of those that a query attends to.
"""
