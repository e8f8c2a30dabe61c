"""The parts of phrase attention (Nguyen and Joty 2018).

* `structures`: which heads attend to which n-grams, with which queries;
* `heads`: how a group of heads scores an n-gram, its keys and values;
* `ngrams`: n-grams of a sequence, and which of them a query attends to;
* `scores`: statistics of the weights, by token and by order.
"""
