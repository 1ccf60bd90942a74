"""A classifier of handwritten digits: a neural network written in NumPy, trained with `srcgrad.grad`.

The data are the 1,797 images of 8 x 8 pixels that come with scikit-learn. Run it with
`pip install -e ".[examples]" && python examples/digits.py`.
"""

import numpy as np
from sklearn.datasets import load_digits

import srcgrad


def network(parameters, images):
    """The log-probabilities of the ten digits, one row per image."""
    (w1, b1), (w2, b2) = parameters
    hidden = np.tanh(images @ w1 + b1)
    scores = hidden @ w2 + b2
    scores = scores - np.max(scores, axis=1, keepdims=True)
    return scores - np.log(np.sum(np.exp(scores), axis=1, keepdims=True))


def loss(parameters, images, labels, decay=1e-4):
    """Cross-entropy, and a penalty on large weights."""
    rows = np.arange(len(labels))
    total = -np.mean(network(parameters, images)[rows, labels])
    for weights, _ in parameters:
        total = total + decay * np.sum(weights**2)
    return total


def initial(rng, sizes=(64, 48, 10)):
    return [
        (rng.normal(size=(rows, columns)) / np.sqrt(rows), np.zeros(columns))
        for rows, columns in zip(sizes[:-1], sizes[1:], strict=True)
    ]


def train(parameters, images, labels, rng, epochs=30, batch=64, rate=0.2, momentum=0.9):
    """Stochastic gradient descent with momentum."""
    loss_grad = srcgrad.grad(loss)
    velocity = [(np.zeros_like(w), np.zeros_like(b)) for w, b in parameters]
    for _ in range(epochs):
        order = rng.permutation(len(labels))
        for start in range(0, len(order), batch):
            chosen = order[start : start + batch]
            gradient = loss_grad(parameters, images[chosen], labels[chosen])
            velocity = [
                (momentum * vw - rate * (1 - momentum) * gw, momentum * vb - rate * (1 - momentum) * gb)
                for (vw, vb), (gw, gb) in zip(velocity, gradient, strict=True)
            ]
            parameters = [(w + vw, b + vb) for (w, b), (vw, vb) in zip(parameters, velocity, strict=True)]
    return parameters


def accuracy(parameters, images, labels):
    return np.mean(np.argmax(network(parameters, images), axis=1) == labels)


def main():
    digits = load_digits()
    images, labels = digits.data / 16.0, digits.target
    rng = np.random.default_rng(0)
    order = rng.permutation(len(labels))
    training, test = order[:1400], order[1400:]

    parameters = initial(rng)
    check(parameters, images[:50], labels[:50])
    parameters = train(parameters, images[training], labels[training], rng)
    seen = accuracy(parameters, images[training], labels[training])
    unseen = accuracy(parameters, images[test], labels[test])
    print(f"right on {100 * seen:.1f} % of the training images and {100 * unseen:.1f} % of the others")
    assert unseen > 0.95


def check(parameters, images, labels):
    """The gradient against a finite difference along a random direction."""
    rng = np.random.default_rng(1)
    gradient = srcgrad.grad(loss)(parameters, images, labels)
    directions = [(rng.normal(size=w.shape), rng.normal(size=b.shape)) for w, b in parameters]

    def along(step):
        moved = [
            (w + step * dw, b + step * db) for (w, b), (dw, db) in zip(parameters, directions, strict=True)
        ]
        return loss(moved, images, labels)

    slope = sum(
        np.sum(gw * dw) + np.sum(gb * db) for (gw, gb), (dw, db) in zip(gradient, directions, strict=True)
    )
    assert abs(slope - (along(1e-6) - along(-1e-6)) / 2e-6) < 1e-6 * max(1.0, abs(slope))


if __name__ == "__main__":
    main()
