"""The naive front end of speech recognition, and recordings for it."""

import numpy as np


def recording(samples, seed=0):
    """Ids of a wandering tone with its overtones and some noise."""
    rng = np.random.default_rng(seed)
    seconds = np.arange(samples) / 16_000
    phase = 2 * np.pi * (rng.uniform(80, 250) + 40 * np.sin(5 * seconds)) * seconds
    voice = sum(np.sin(k * phase + rng.uniform(0, 6)) / k for k in range(1, 20))
    voice *= 0.1 + 0.1 * np.sin(2 * np.pi * rng.uniform(1, 4) * seconds)
    voice += rng.normal(scale=0.003, size=samples)
    return np.round(voice * 32768).astype("int32") + 32768


def batch_of(*lengths, width=None):
    """Recordings of several lengths, padded with 0."""
    ids = np.zeros((len(lengths), width or max(lengths)), "int32")
    for row, samples in enumerate(lengths):
        ids[row, :samples] = recording(samples, seed=row)
    return ids


def hertz(mel):
    """The frequency of a point on Slaney's scale."""
    return mel * 200 / 3 if mel < 15 else 1000 * 6.4 ** ((mel - 15) / 27)


def log_mels(ids):
    """Logarithms of energies of one recording without padding, `[F, 80]`."""
    samples = (np.asarray(ids, "float64") - 32768) / 32768
    count = -(-len(samples) // 160)
    samples = np.pad(samples, (0, 400))
    places = np.arange(400)
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * places / 400)
    # 8,000 Hz is 15 + 27 log(8) / log(6.4).
    corners = np.linspace(0, 15 + 27 * np.log(8) / np.log(6.4), 82)
    found = np.zeros((count, 80))
    for frame in range(count):
        window = samples[160 * frame :][:400] * hann
        for mel in range(80):
            low, peak, high = (hertz(corner) for corner in corners[mel : mel + 3])
            for k in range(201):
                frequency = 40 * k
                if low < frequency < high:
                    side = low if frequency < peak else high
                    weight = (frequency - side) / (peak - side)
                    wave = np.exp(-2j * np.pi * k * places / 400)
                    found[frame, mel] += weight * abs((window * wave).sum()) ** 2
    return np.log(np.maximum(found / 1e-6, 1))


def normalized(found):
    """Features `[F, 80]` with mean 0 and variance 1."""
    return (found - found.mean(axis=0)) / np.sqrt(found.var(axis=0) + 1e-5)


def convolution(x, kernel, bias):
    """A gated convolution `[F, I]` to `[F / 2, O]`, `F` even, with zeros around."""
    size = len(kernel)
    before = (size - 2) // 2
    padded = np.pad(x, ((before, size), (0, 0)))
    rows = [
        bias + sum(padded[2 * place + tap] @ kernel[tap] for tap in range(size))
        for place in range(len(x) // 2)
    ]
    values, gates = np.split(np.array(rows), 2, axis=-1)
    return values / (1 + np.exp(-gates))


def front_end(ids, weights):
    """Outputs for one recording without padding, `[P, hidden_dim]`.

    Args:
        weights: kernel and bias of the first and of the second convolution.
    """
    x = normalized(log_mels(ids))
    positions = -(-len(ids) // 640)
    for number in range(2):
        frames = positions * (4 >> number)
        x = np.pad(x, ((0, frames - len(x)), (0, 0)))
        x = convolution(x, *weights[2 * number : 2 * number + 2])
        x = x[: -(-len(ids) // (320 << number))]
    return x
