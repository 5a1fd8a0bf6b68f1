"""Candidates from a language model: it names every topic that may fit, and sometimes forgets the right one.

Nothing makes such sets hold the truth, so the miss rate must be declared; the promise is then made for less.
The answers here are made up by a seeded generator, in the form in which a chat model gives them: a JSON list.
"""

import json

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import setwise

WORDS = {
    "sport": "goal match team coach season win score league",
    "money": "bank rate market loan stock tax price profit",
    "health": "doctor drug patient virus clinic dose nurse trial",
    "space": "orbit rocket moon crew launch probe comet lander",
}
TOPICS = list(WORDS)


def articles(n, rng):
    """Short texts of which half of the words come from other topics, and their topics."""
    y = rng.integers(0, 4, n)
    every = " ".join(WORDS.values()).split()
    texts = [" ".join([*rng.choice(WORDS[TOPICS[k]].split(), 3), *rng.choice(every, 4)]) for k in y]
    return texts, np.array(TOPICS)[y]


def ask(texts, topics, rng):
    """What the language model answered: the topic in 98 of 100 cases, and others that may fit."""
    answers = []
    for text, topic in zip(texts, topics, strict=True):
        fits = {other for other in TOPICS if sum(word in WORDS[other].split() for word in text.split()) > 2}
        named = (fits | {topic}) if rng.random() > 0.02 else (fits - {topic}) or {TOPICS[0]}
        answers.append(json.dumps(sorted(named)))
    return answers


def main():
    rng = np.random.default_rng(0)
    texts, topics = articles(600, rng)
    model = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(texts, topics)

    texts, topics = articles(800, rng)
    proposals = [json.loads(answer) for answer in ask(texts, topics, rng)]
    candidates = setwise.LabelSets.from_lists(proposals, classes=model.classes_)
    calibration = setwise.conformalize(model.predict_proba(texts), candidates, miss_rate=0.03, random_state=0)
    print(calibration.guarantee(0.9))

    texts, topics = articles(1000, rng)
    result = setwise.evaluate(calibration.predict_set(model.predict_proba(texts), 0.9), topics)
    print(f"coverage {result['coverage']:.3f}, {result['mean_size']:.2f} topics a set")
    return {"coverage": result["coverage"], "mean_size": result["mean_size"], "n": result["n"]}


if __name__ == "__main__":
    main()
