"""Hold dpflow's streams against Python's msgpack and msgpack-numpy, both ways.

usage: check_stream.py DPFLOW FOLDER

Reading uses nothing of dpflow: an Unpacker with msgpack_numpy's hook. What it gives is
compared with the arrays that a stream was made from and with what `dpflow inspect --npy`
writes. Writing follows lib/wire/FORMAT.md, without the optional padding.
"""

import json
import os
import subprocess
import sys
import tempfile
import traceback

import msgpack
import msgpack_numpy
import numpy as np
import xxhash

DPFLOW, FOLDER = sys.argv[1], sys.argv[2]
DTYPES = {"u8": "|u1", "i32": "<i4", "i64": "<i8", "f32": "<f4", "f64": "<f8",
          "bits": "|u1"}


def path(name):
    return os.path.join(FOLDER, name)


def dpflow(*words, status=0):
    """Run a stage; its standard output."""
    run = subprocess.run([DPFLOW, *words], stdin=subprocess.DEVNULL, capture_output=True,
                         timeout=300)
    said = run.stderr.decode(errors="replace").strip()
    assert run.returncode == status, f"{words[0]}: exit {run.returncode}: {said}"
    return run.stdout.decode()


def load(name, *words):
    dpflow("load", *words, "-o", path(name))
    return path(name)


def through_a_stage(name):
    """Decoded, encoded and nothing else: through.mp."""
    dpflow("split", "--fraction", "1", "-i", path(name), "-o", path("through.mp"))


def same(a, b, what):
    assert a.dtype == b.dtype, f"{what}: {a.dtype} and {b.dtype}"
    assert a.shape == b.shape, f"{what}: {a.shape} and {b.shape}"
    assert a.tobytes() == b.tobytes(), f"{what}: values differ"


# ------------------------------------------------------------------------------ reading

def check_padding(frame):
    """dpflow aligns the data of each tensor to 64 bytes from the start of its frame."""
    at = frame.find(b"\xc4\x04data")
    while at >= 0:
        width = {0xc4: 1, 0xc5: 2, 0xc6: 4}[frame[at + 6]]
        start = at + 7 + width
        assert start % 64 == 0, f"data at byte {start} of its frame"
        size = int.from_bytes(frame[at + 7:start], "big")
        at = frame.find(b"\xc4\x04data", start + size)


def read(file, padded=True):
    """Header, trailer and {field: array} of a stream; checks every rule on the way."""
    with open(file, "rb") as f:
        raw = f.read()
    unpacker = msgpack.Unpacker(object_hook=msgpack_numpy.decode,
                                max_buffer_size=len(raw))
    unpacker.feed(raw)
    frames, starts = [], [0]
    for frame in unpacker:
        frames.append(frame)
        starts.append(unpacker.tell())
    assert starts[-1] == len(raw), "bytes follow the last frame"
    header, trailer = frames[0], frames[-1]
    for frame, start, end in zip(frames, starts, starts[1:]):
        assert list(frame)[:2] == ["bytes", "type"], "the first keys are bytes and type"
        assert raw[start + 7] == 0xcf and frame["bytes"] == end - start, "a frame's size"
        if padded and frame["type"] == "batch":
            check_padding(raw[start:end])
    assert header["type"] == "header" and header["format"] == 1
    assert trailer["type"] == "trailer" and trailer["status"] == "ok"
    digest = "xxh128:" + xxhash.xxh3_128_hexdigest(raw[:starts[-2]])
    assert trailer["digest"] == digest, f"digest {trailer['digest']}, not {digest}"
    assert trailer["frames"] == len(frames) - 1, "the trailer's frame count"
    batches = [f for f in frames if f["type"] == "batch"]
    assert [b["sequence"] for b in batches] == list(range(len(batches))), "the sequence"
    fields = {}
    for field in header["fields"]:
        name, shape = field["name"], tuple(field["shape"])
        if field["dtype"] == "bits":
            shape = shape[:-1] + ((shape[-1] + 7) // 8,)
        empty = np.empty((0, *shape), DTYPES[field["dtype"]])
        fields[name] = np.concatenate([empty] + [b["fields"][name] for b in batches])
        same(fields[name][:0], empty, f"field {name} and its header")
        assert len(fields[name]) == trailer["records"], "the trailer's record count"
    assert all(list(b["fields"]) == list(fields) for b in batches), "fields of a batch"
    assert header["records"] in (None, trailer["records"]), "the header's record count"
    return header, trailer, fields


def inspect(file):
    """What dpflow itself says: its trailer line and {field: array}."""
    folder = tempfile.mkdtemp(dir=FOLDER)
    said = dpflow("inspect", "-i", file, "--json", "--head", "0", "--npy", folder)
    lines = [json.loads(line) for line in said.splitlines()]
    arrays = {n[:-4]: np.load(os.path.join(folder, n)) for n in os.listdir(folder)}
    return lines[-1], arrays


def check(file, source=None, padded=True):
    """Python and dpflow agree on a stream, and with `source`, arrays by field."""
    header, trailer, fields = read(file, padded)
    said, arrays = inspect(file)
    assert fields and set(fields) == set(arrays), f"fields {set(fields)}, {set(arrays)}"
    for name in fields:
        same(fields[name], arrays[name], f"field {name}, Python and dpflow")
    for key in ("records", "frames", "digest", "status"):
        assert said[key] == trailer[key], f"{key}: {said[key]}, not {trailer[key]}"
    for name in source or {}:
        same(fields[name], source[name], f"field {name} and its source")
    return header, fields


# ------------------------------------------------------------------------------ writing

def frame(kind, **entries):
    packer = msgpack.Packer(default=msgpack_numpy.encode)
    rest = packer.pack("type") + packer.pack(kind)
    for key, value in entries.items():
        rest += packer.pack(key) + packer.pack(value)
    size = (16 + len(rest)).to_bytes(8, "big")
    return bytes([0x80 + 2 + len(entries)]) + b"\xa5bytes\xcf" + size + rest


def write(file, fields, batches, between=b"", change=None):
    """A stream as FORMAT.md has it. `change` spoils the trailer's entries."""
    body = frame("header", format=1, fields=fields, records=None,
                 provenance=[{"stage": "check_stream.py"}],
                 ledger={"data": "public", "events": []})
    for i, batch in enumerate(batches):
        body += frame("batch", sequence=i, fields=batch) + between
    entries = {"records": sum(len(next(iter(b.values()))) for b in batches),
               "frames": 1 + len(batches) * (2 if between else 1),
               "digest": "xxh128:" + xxhash.xxh3_128_hexdigest(body), "status": "ok"}
    entries.update(change or {})
    with open(file, "wb") as f:
        f.write(body + frame("trailer", **entries))
    return file


def packed(bits):
    """A bits tensor by hand: msgpack-numpy knows nothing of the key "bits"."""
    rows = np.packbits(bits, axis=-1, bitorder="little")
    return rows, {b"nd": True, b"type": "|u1", b"kind": b"", b"shape": list(rows.shape),
                  b"bits": bits.shape[-1], b"data": rows.tobytes()}


# -------------------------------------------------------------------------------- cases

RANDOM = np.random.default_rng(1)
ARRAYS = {
    "u8": RANDOM.integers(0, 256, (1000, 3), np.uint8),
    "i32": RANDOM.integers(-2**31, 2**31, (1000,), np.int32),
    "i64": RANDOM.integers(-2**63, 2**63 - 1, (1000, 2, 2), np.int64),
    "f32": RANDOM.normal(size=(1000, 5)).astype(np.float32),
    "f64": RANDOM.normal(size=(1000, 4, 1, 3)) * 1e200,
}


def digits_raw():
    header, fields = check(load("digits.mp", "digits:train"))
    assert header["ledger"]["data"] == "private"
    (source,) = header["ledger"]["events"]
    assert (source["event"], source["name"]) == ("source", "digits:train")
    assert source["digest"].startswith("blake2b:") and source["part"] == "train"
    assert fields["x"].shape == (1437, 8, 8) and fields["x"].max() == 16
    assert set(np.unique(fields["y"])) == set(range(10))


def digits_normalized():
    raw = read(load("raw.mp", "digits:test"))[2]
    dpflow("normalize", "--unit", "0:16", "-i", path("raw.mp"), "-o", path("unit.mp"))
    header, _ = check(path("unit.mp"), {"x": raw["x"].astype(np.float32) / np.float32(16),
                                        "y": raw["y"]})
    assert header["fields"][0]["bounds"] == [[0.0], [1.0]]
    assert [p["stage"] for p in header["provenance"]] == ["load", "normalize"]


def split_unknown_count():
    dpflow("load", "digits:all", "-o", path("all.mp"))
    dpflow("split", "--class", "3,7", "-i", path("all.mp"), "-o", path("part.mp"))
    whole = read(path("all.mp"))[2]
    keep = np.isin(whole["y"], [3, 7])
    header, _ = check(path("part.mp"), {n: a[keep] for n, a in whole.items()})
    assert header["records"] is None


def partition_event():
    load("all.mp", "digits:all")
    dpflow("split", "--parts", "4", "--part", "1", "-i", path("all.mp"),
           "-o", path("part.mp"))
    source, event = check(path("part.mp"))[0]["ledger"]["events"]
    assert source["event"] == "source"
    assert event["event"] == "partition" and (event["parts"], event["part"]) == (4, 1)


def tumour_mask():
    header, fields = check(load("tumour.mp", "synth-tumour:test", "--count", "3",
                                "--side", "32"))
    assert fields["x"].shape == (3, 4, 32, 32, 32) and fields["mask"].max() <= 3
    assert header["fields"][1]["classes"] == 4


def census():
    header, fields = check(load("census.mp", "synth-census:train", "--count", "30000"))
    x = header["fields"][0]
    lo, hi = np.float32(x["bounds"])
    assert x["features"][0] == "age" and len(x["features"]) == fields["x"].shape[1]
    assert (fields["x"] >= lo).all() and (fields["x"] <= hi).all()


def many_batches():
    frames = read(load("synth.mp", "synth-digits:train", "--count", "5000"))[1]["frames"]
    assert frames > 3, "the stream has only one batch"
    check(path("synth.mp"))


def npy(dtype):
    np.save(path(dtype + ".npy"), ARRAYS[dtype])
    source = np.load(path(dtype + ".npy"))
    header, _ = check(load(dtype + ".mp", path(dtype + ".npy")), {"x": source})
    assert header["fields"][0]["dtype"] == dtype


def npz(save):
    save(path("all.npz"), **ARRAYS)
    with np.load(path("all.npz")) as source:
        header, _ = check(load("npz.mp", path("all.npz")), dict(source))
    assert [f["dtype"] for f in header["fields"]] == list(ARRAYS)


def from_python():
    fields = [{"name": n, "dtype": n, "shape": list(a.shape[1:])}
              for n, a in ARRAYS.items()]
    batches = [{n: a[i:j] for n, a in ARRAYS.items()}
               for i, j in ((0, 7), (7, 8), (8, 1000))]
    check(write(path("python.mp"), fields, batches), ARRAYS, padded=False)
    # and through a stage, which pads what it writes
    through_a_stage("python.mp")
    check(path("through.mp"), ARRAYS)


def bits_from_python():
    for count in (1, 8, 13, 64):
        bits = RANDOM.integers(0, 2, (50, 3, count), np.uint8)
        rows, tensor = packed(bits)
        write(path("bits.mp"), [{"name": "b", "dtype": "bits", "shape": [3, count]}],
              [{"b": tensor}], change={"records": 50})
        fields = check(path("bits.mp"), {"b": rows}, padded=False)[1]
        said = dpflow("inspect", "-i", path("bits.mp"), "--json", "--head", "50")
        shown = [json.loads(line) for line in said.splitlines()]
        shown = [line["b"] for line in shown if line.get("type") == "record"]
        same(np.array(shown, np.uint8).reshape(bits.shape), bits, "bits as shown")
        back = np.unpackbits(fields["b"], axis=-1, count=count, bitorder="little")
        same(back, bits, "bits unpacked")
        through_a_stage("bits.mp")
        check(path("through.mp"), {"b": rows})


def forwarded():
    """A frame of a kind that nobody knows goes through a stage as it is."""
    fields = [{"name": "x", "dtype": "u8", "shape": [3]}]
    other = frame("weather", sun=np.arange(6.0).reshape(2, 3), anything=[1, None, "x"])
    write(path("other.mp"), fields, [{"x": ARRAYS["u8"]}], between=other)
    through_a_stage("other.mp")
    with open(path("through.mp"), "rb") as f:
        assert other in f.read(), "the frame was changed or lost"
    check(path("through.mp"), {"x": ARRAYS["u8"]})


def refused():
    """Streams that break a rule are refused with exit status 3."""
    fields = [{"name": "x", "dtype": "u8", "shape": [3]}]
    good = write(path("good.mp"), fields, [{"x": ARRAYS["u8"]}])
    check(good, {"x": ARRAYS["u8"]}, padded=False)
    with open(good, "rb") as f:
        raw = f.read()
    trailer = raw.rfind(b"\x86\xa5bytes")
    flipped = bytearray(raw)
    flipped[trailer - 1] ^= 1
    for name, spoilt in (("no trailer", raw[:trailer]), ("cut", raw[:trailer - 9]),
                         ("flipped bit", flipped), ("data behind", raw + b"\xc0")):
        with open(path("spoilt.mp"), "wb") as f:
            f.write(spoilt)
        try:
            dpflow("inspect", "-i", path("spoilt.mp"), status=3)
        except AssertionError as e:
            raise AssertionError(f"{name}: {e}") from None
    for change in ({"records": 999}, {"frames": 3}, {"status": "failed"},
                   {"status": "?"}):
        write(path("spoilt.mp"), fields, [{"x": ARRAYS["u8"]}], change=change)
        dpflow("inspect", "-i", path("spoilt.mp"), status=3)


CASES = {
    "digits, raw": digits_raw,
    "digits, normalized": digits_normalized,
    "two classes, number of records unknown": split_unknown_count,
    "a part, with its ledger event": partition_event,
    "volumes with masks": tumour_mask,
    "census with features and bounds": census,
    "many batches": many_batches,
    **{f".npy, {dtype}": (lambda dtype=dtype: npy(dtype)) for dtype in ARRAYS},
    ".npz, all dtypes": lambda: npz(np.savez),
    ".npz, compressed": lambda: npz(np.savez_compressed),
    "a stream from Python": from_python,
    "packed bits from Python": bits_from_python,
    "an unknown frame": forwarded,
    "broken streams": refused,
}


def main():
    failed = 0
    for name, case in CASES.items():
        try:
            case()
            print(f"ok    {name}")
        except Exception as e:  # the next case may still pass
            failed += 1
            print(f"FAIL  {name}: {e or type(e).__name__}")
            if not isinstance(e, AssertionError) or not str(e):
                traceback.print_exc(file=sys.stdout)
    print(f"{len(CASES) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
