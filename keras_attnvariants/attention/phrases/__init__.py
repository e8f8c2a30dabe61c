"""The parts of phrase attention (Nguyen and Joty 2018).

* `structures`: which heads attend to which n-grams, with which queries;
* `scoring`: how a query scores an n-gram;
* `heads`: keys and values of a group of heads;
* `ngrams`: n-grams of a sequence, and which of them a query attends to;
* `scores`: statistics of the weights, by token and by order.
"""
