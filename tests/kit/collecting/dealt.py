"""In which order the workers run the tests: so that none is left alone at the end with one that takes long."""

from itertools import chain, groupby, islice


def dealt(tests, workers, is_slow, file_of):
    """Return the tests in an order in which each worker begins with its share of the slow ones.

    xdist gives each worker an equal part, one part after another, and who has nothing left takes half of what is left
    to another. Slow tests of one file stay together: many of them wait for one play, which is not to keep two waiting.
    """
    slow = [[*together] for _, together in groupby(filter(is_slow, tests), file_of)]
    quick = iter([test for test in tests if not is_slow(test)])
    order = []
    for worker in range(workers):
        share = [*chain.from_iterable(slow[worker::workers])]
        room = (len(tests) - len(order)) // (workers - worker) - len(share)
        order += [*share, *islice(quick, max(room, 0))]
    return [*order, *quick]
