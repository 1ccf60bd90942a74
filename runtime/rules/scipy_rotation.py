"""Rules for rotations (SciPy manual, `scipy.spatial.transform.Rotation`).

A rotation keeps unit quaternions (x, y, z, w); its cotangent is a dict with theirs. The formulas are those of
J. Diebel, "Representing Attitude" (2006).
"""

# mypy: allow-untyped-defs, no-check-untyped-defs

from __future__ import annotations

import math

import numpy as np
from scipy.spatial.transform import Rotation

from srcgrad.runtime.rules.callbacks import part_of, pulled, pushed
from srcgrad.runtime.rules.table import forward, nondifferentiable, reverse


def made_bar(g, function, args):
    """The cotangent of the first of `args`, from which `function` makes the quaternions."""
    return pulled(function, args, part_of(g, "_quat"), 1)[0]


def made_dot(dot, function, args):
    return {"_quat": pushed(function, args, (dot,))}


def radians(x, degrees):
    return x * (math.pi / 180) if degrees else x


def half_turn(square):
    """sin(a / 2) / a for an angle of which the square is given."""
    small = square < 1e-6
    angle = np.sqrt(np.where(small, 1, square))
    return np.where(small, 0.5 - square / 48 + square**2 / 3840, np.sin(angle / 2) / angle)


def from_vector(vector, degrees):
    v = np.reshape(radians(np.asarray(vector), degrees), (-1, 3))
    square = np.sum(v * v, axis=1, keepdims=True)
    small = square < 1e-6
    cosine = np.where(
        small, 1 - square / 8 + square**2 / 384, np.cos(np.sqrt(np.where(small, 1, square)) / 2)
    )
    return np.concatenate([v * half_turn(square), cosine], axis=1)


@reverse(Rotation.from_rotvec, at=[])
def from_rotvec(g, made, rotvec, degrees=False):
    return made_bar(g, from_vector, (rotvec, degrees))


@forward(Rotation.from_rotvec)
def from_rotvec_forward(rotvec_dot, made, rotvec, degrees=False):
    return made_dot(rotvec_dot, from_vector, (rotvec, degrees))


def normalized(quat, scalar_first):
    q = np.reshape(np.asarray(quat), (-1, 4))
    if scalar_first:
        q = np.roll(q, -1, axis=1)
    return q / np.sqrt(np.sum(q * q, axis=1, keepdims=True))


@reverse(Rotation.from_quat, at=[])
def from_quat(g, made, quat, *, scalar_first=False):
    return made_bar(g, normalized, (quat, scalar_first))


@forward(Rotation.from_quat)
def from_quat_forward(quat_dot, made, quat, *, scalar_first=False):
    return made_dot(quat_dot, normalized, (quat, scalar_first))


def composed(p, q):
    """The quaternions of first the rotation `q`, then `p`."""
    u, s, v, t = p[:, :3], p[:, 3:], q[:, :3], q[:, 3:]
    return np.concatenate(
        [s * v + t * u + np.cross(u, v), s * t - np.sum(u * v, axis=1, keepdims=True)], axis=1
    )


def from_angles(angles, seq, degrees):
    """Turns about the axes in `seq`: capital letters mean axes that turn too."""
    a = np.reshape(radians(np.asarray(angles), degrees), (-1, len(seq)))
    eye = np.eye(4)
    total = np.concatenate([np.zeros((a.shape[0], 3)), np.ones((a.shape[0], 1))], axis=1)
    for k in range(len(seq)):
        half = a[:, k : k + 1] / 2
        turn = np.sin(half) * eye["xyz".index(seq[k].lower())] + np.cos(half) * eye[3]
        total = composed(total, turn) if seq[k].isupper() else composed(turn, total)
    return total


def same_sign(quat, made):
    """Opposite quaternions are the same rotation."""
    return np.where(np.sum(quat * made, axis=1, keepdims=True) < 0, -1.0, 1.0)


def signed_angles(angles, seq, degrees, made):
    quat = from_angles(angles, seq, degrees)
    return quat * same_sign(quat, made)


nondifferentiable(same_sign)


@reverse(Rotation.from_euler, wrt="angles", at=[])
def from_euler(g, made, seq, angles, degrees=False):
    return made_bar(g, signed_angles, (angles, seq, degrees, made._quat))


@forward(Rotation.from_euler)
def from_euler_forward(angles_dot, made, seq, angles, degrees=False):
    return made_dot(angles_dot, signed_angles, (angles, seq, degrees, made._quat))


# --- what a rotation is asked for ---------------------------------------------------------------------------


def own_bar(g, y, function, self, *options):
    """The cotangent of a rotation for a result that `function` computes from the quaternions."""
    g = np.reshape(g, (self._quat.shape[0], *np.shape(y)[0 if self._single else 1 :]))
    return {"_quat": pulled(function, (self._quat, *options), g, 1)[0]}


def own_dot(self_dot, y, function, self, *options):
    return np.reshape(pushed(function, (self._quat, *options), (part_of(self_dot, "_quat"),)), np.shape(y))


def matrix(q):
    x, y, z, w = q[:, 0], q[:, 1], q[:, 2], q[:, 3]
    rows = [
        [x * x - y * y - z * z + w * w, 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), y * y - x * x - z * z + w * w, 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), z * z - x * x - y * y + w * w],
    ]
    return np.moveaxis(np.stack([np.stack(row) for row in rows]), 2, 0)


@reverse(Rotation.as_matrix, at=[])
def as_matrix(g, y, self):
    return own_bar(g, y, matrix, self)


@forward(Rotation.as_matrix)
def as_matrix_forward(self_dot, y, self):
    return own_dot(self_dot, y, matrix, self)


def quaternion(q, canonical, scalar_first):
    if canonical:
        q = q * canonical_sign(q)
    return np.roll(q, 1, axis=1) if scalar_first else q


def canonical_sign(q):
    """The sign of the last component of each quaternion that is not 0."""
    order = q[:, [3, 0, 1, 2]]
    first = np.argmax(order != 0, axis=1)
    return np.sign(np.take_along_axis(order, first[:, None], 1))


nondifferentiable(canonical_sign)


@reverse(Rotation.as_quat, at=[])
def as_quat(g, y, self, canonical=False, *, scalar_first=False):
    return own_bar(g, y, quaternion, self, canonical, scalar_first)


@forward(Rotation.as_quat)
def as_quat_forward(self_dot, y, self, canonical=False, *, scalar_first=False):
    return own_dot(self_dot, y, quaternion, self, canonical, scalar_first)


def rotation_vector(q, degrees):
    q = q * canonical_sign(q)
    v, w = q[:, :3], q[:, 3:]
    square = np.sum(v * v, axis=1, keepdims=True)
    small = square < 1e-6
    sine = np.sqrt(np.where(small, 1, square))
    near = (2 - 2 * square / (3 * w * w)) / w
    found = v * np.where(small, near, 2 * np.arctan2(sine, w) / sine)
    return found * (180 / math.pi) if degrees else found


@reverse(Rotation.as_rotvec, at=[])
def as_rotvec(g, y, self, degrees=False):
    return own_bar(g, y, rotation_vector, self, degrees)


@forward(Rotation.as_rotvec)
def as_rotvec_forward(self_dot, y, self, degrees=False):
    return own_dot(self_dot, y, rotation_vector, self, degrees)


def angle(q):
    square = np.sum(q[:, :3] * q[:, :3], axis=1)
    zero = square == 0
    return 2 * np.arctan2(np.where(zero, 0, np.sqrt(np.where(zero, 1, square))), np.abs(q[:, 3]))


@reverse(Rotation.magnitude, at=[])
def magnitude(g, y, self):
    """At the identity, where the angle has a kink, the derivative is 0."""
    return own_bar(g, y, angle, self)


@forward(Rotation.magnitude)
def magnitude_forward(self_dot, y, self):
    return own_dot(self_dot, y, angle, self)


BACKWARDS = np.array([-1.0, -1.0, -1.0, 1.0])


@reverse(Rotation.inv, at=[])
def inv(g, made, self):
    return {"_quat": part_of(g, "_quat") * BACKWARDS}


@forward(Rotation.inv)
def inv_forward(self_dot, made, self):
    return {"_quat": part_of(self_dot, "_quat") * BACKWARDS}


def rotated(q, vectors, inverse):
    vectors = np.reshape(np.asarray(vectors), (-1, 3))
    m = matrix(q)
    return np.sum((np.swapaxes(m, 1, 2) if inverse else m) * vectors[:, None, :], axis=2)


@reverse(Rotation.apply, wrt=("self", "vectors"), at=[])
def apply(g, y, self, vectors, inverse=False):
    bars = pulled(rotated, (self._quat, vectors, inverse), np.reshape(g, (-1, 3)), 2)
    return {"_quat": bars[0]}, bars[1]


@forward(Rotation.apply, joint=True)
def apply_forward(self_dot, vectors_dot, y, self, vectors, inverse=False):
    dots = (part_of(self_dot, "_quat"), vectors_dot)
    return np.reshape(pushed(rotated, (self._quat, vectors, inverse), dots), np.shape(y))
