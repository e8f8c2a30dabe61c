"""The parts of phrase attention (Nguyen and Joty 2018), each on its own.

* `structures`: which heads attend to which n-grams, with which queries;
* `scoring`: how a query scores an n-gram;
* `heads`: what a group of heads keeps of a sequence;
* `ngrams`: n-grams of a sequence, and which of them a query may see;
* `scores`: reading the weights, by token, by quadrant, as shares.
"""
