# SPDX-License-Identifier: Apache-2.0
"""Figures: what was measured in each round beside its bound from the same round."""

import json
import statistics
import sys


def say(text):
    print(f"tests/bench/run: {text}", file=sys.stderr, flush=True)


def percentile(values, percent):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]


class Figure:
    """rounds: pairs of a value and the bound of the same round. The ratio is the median of theirs."""

    def __init__(self, name, unit, bound, rounds):
        self.name = name
        self.unit = unit
        self.bound = bound
        self.rounds = [(float(value), float(bound_value)) for value, bound_value in rounds]

    def line(self):
        values, bounds = zip(*self.rounds)
        return {"name": self.name, "value": rounded(statistics.median(values)), "unit": self.unit, "bound": self.bound,
                "bound_value": rounded(statistics.median(bounds)),
                "ratio": rounded(statistics.median(value / bound for value, bound in self.rounds))}

    def raw(self):
        return dict(self.line(), rounds=[[rounded(value), rounded(bound)] for value, bound in self.rounds])


def rounded(number):
    """Four digits are more than a machine like this can tell."""
    return float(f"{number:.4g}")


class Sheet:
    """The figures of one run: printed as they come, and kept."""

    def __init__(self, wanted):
        self.wanted = wanted
        self.figures = []

    def add(self, *arguments):
        figure = Figure(*arguments)
        if figure.name in self.wanted:
            self.figures.append(figure)
            print(json.dumps(figure.line()), flush=True)
