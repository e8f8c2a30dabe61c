"""The parts of phrase attention (Nguyen and Joty 2018).

* `structures`: which heads attend to which n-grams, with which queries;
* `heads`: how a group of heads attends: its keys, values and decoding state;
* `scorings`: how an n-gram is scored, by the queries and keys of a group;
* `ngrams`: n-grams of a sequence, and which of them a query attends to;
* `scores`: what the weights say, by token and by order.
"""
