# ruff: noqa: E501 - a row of the table is a line
"""Every mistake people make with their own data, as one table: none ends in a traceback, none silent and wrong.

Each row makes an input, uses it, and says what must happen: the `right` result, a warning, or an error, whose text
names the cause (the file, column, row, label or argument). `READ` has files that two commands read, `COMMANDS` other
command lines, `CALLS` the library.
"""

import bz2
import codecs
import contextlib
import gzip
import io
import json
import lzma
import os
import pickle
import re
import shutil
import subprocess
import sys
import warnings
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from sklearn.cluster import KMeans
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC, LinearSVC

from setwise import (
    Calibration,
    ConformalClassifier,
    CrossConformalClassifier,
    LabelSets,
    Votes,
    conformalize,
    evaluate,
)
from setwise.tables import read_table

from .material import (
    CHECKED,
    COMMAND,
    FRAME,
    LISTS,
    MASK,
    NAMES,
    OTHER,
    SETS,
    TRUTH,
    N,
    P,
    X,
    Y,
    changed,
    command,
    csv,
    field,
    jsonl,
    lines,
    make,
    probabilities,
    quoted,
    replaced,
    text,
    votes,
)


@dataclass(frozen=True)
class Outcome:
    kind: str
    value: Any


def right(value):
    return Outcome("right", value)


def warns(words):
    return Outcome("warns", words)


def error(words):
    return Outcome("error", words)


SAME = right("as the plain file")

# -------------------------------------------------------------------- files

PLAIN = text()
FULL = FRAME.assign(answers=["|".join(labels) for labels in LISTS])
RECORDS = [json.loads(line) for line in jsonl(list).splitlines()]
LETTERS = PLAIN.replace("owl", "eüle")
MISSING = error(
    "t.csv, column 'x': row 9 is missing (1 such rows); say how to fill them when the model is fitted (impute='median'), or fill them yourself"
)
EMPTY = error("t.csv: holds no rows")
BINARY = error("which text cannot hold; save the table as .csv text")
ALIKE = "some classes differ only in how they are written: "
ONE = "every row has one candidate, such as "


def column(values):
    """The table with another column x."""
    return FULL.assign(x=values).to_csv(index=False)


def not_number(value):
    return error(f"t.csv, column 'x': row 9 is {value!r}, not a number")


def packed(write):
    stream = io.BytesIO()
    write(stream)
    return stream.getvalue()


def archive(stream):
    with zipfile.ZipFile(stream, "w") as file:
        file.writestr("t.csv", PLAIN)


def cells(write, **options):
    return text(cell=write, **options)


def looks_missing(token):
    return f"t.csv: the class {token!r} looks like a missing label; leave it empty"


READ = {  # the name and content of a file, options, and what happens when it is read
    # encodings
    "UTF-16": ("t.csv", PLAIN.encode("utf-16"), "", SAME),
    "UTF-16, big end first": ("t.csv", codecs.BOM_UTF16_BE + PLAIN.encode("utf-16-be"), "", SAME),
    "UTF-16 without a mark": ("t.csv", PLAIN.encode("utf-16-le"), "", error("byte 1 is 0, which text cannot hold; use --encoding utf-16-le")),
    "UTF-16 declared": ("t.csv", PLAIN.encode("utf-16-le"), "--encoding utf-16-le", SAME),
    "UTF-16 cut off": ("t.csv", PLAIN.encode("utf-16")[:-1], "", error("t.csv: not utf-16 text: byte 2902 (line 61) is 0x0A; fetch the file again")),
    "UTF-32": ("t.csv", PLAIN.encode("utf-32"), "", SAME),
    "a byte order mark": ("t.csv", PLAIN.encode("utf-8-sig"), "", SAME),
    "a mark before a quote": ("t.csv", PLAIN.replace("x,", '"x",', 1).encode("utf-8-sig"), "", SAME),
    "latin-1": ("t.csv", LETTERS.encode("latin-1"), "", error("t.csv: not utf-8 text: byte 56 (line 3) is 0xFC; use --encoding cp1252")),
    "cp1252 declared": ("t.csv", PLAIN.encode("cp1252"), "--encoding cp1252", SAME),
    "UTF-8 declared latin-1": ("t.csv", LETTERS, "--encoding latin-1", warns("t.csv: is read as the UTF-8 text that it is, not as latin-1")),
    "an unknown encoding": ("t.csv", PLAIN, "--encoding windows", error("encoding: 'windows' is not known; use utf-8")),
    "a codec of no text": ("t.csv", PLAIN, "--encoding base64", error("encoding: 'base64' is not known; use utf-8")),
    # numbers
    "decimal commas": ("t.csv", text(";", ","), "", error("t.csv, column 'x': row 0 is '3,126', not a number; use --decimal ,")),
    "decimal commas declared": ("t.csv", text(";", ","), "--decimal ,", SAME),
    "decimal commas and tabs": ("t.tsv", text("\t", ","), "", error("t.tsv, column 'x': row 0 is '3,126', not a number; use --decimal ,")),
    "the delimiter as decimal mark": ("t.csv", PLAIN, "--decimal ,", error("',' separates the columns and cannot also be the decimal mark; use --delimiter")),
    "a word as decimal mark": ("t.csv", PLAIN, "--decimal comma", error("decimal: 'comma' must be one mark")),
    "thousands with commas": ("t.csv", field(0, '"1,234.5"'), "", error("row 9 is '1,234.5', not a number; write numbers without marks between thousands")),
    "thousands, whole": ("t.csv", field(0, '"1,234"'), "", error("row 9 is '1,234', not a number; use --decimal , if the comma is the decimal mark, or write the number without it")),
    "thousands with points": ("t.csv", text(";", ",").replace("3,126", "1.234,5", 1), "--decimal ,", error("row 0 is '1.234,5', not a number; write numbers without marks")),
    "thousands with blanks": ("t.csv", field(0, "1 234.5"), "", error("row 9 is '1 234.5', not a number; write numbers without marks")),
    "NaN": ("t.csv", field(0, "NaN"), "", MISSING),
    "a blank": ("t.csv", field(0, ""), "", MISSING),
    "NA": ("t.csv", field(0, "NA"), "", MISSING),
    "null": ("t.csv", field(0, "null"), "", MISSING),
    "None": ("t.csv", field(0, "None"), "", not_number("None")),
    "a question mark": ("t.csv", field(0, "?"), "", not_number("?")),
    "infinity": ("t.csv", field(0, "inf"), "", error("t.csv, column 'x': row 9 is infinite; repair or remove such rows")),
    "a number too large": ("t.csv", field(0, "1e999"), "", error("t.csv, column 'x': row 9 is infinite")),
    "two points": ("t.csv", field(0, "1.2.3"), "", not_number("1.2.3")),
    "a per cent sign": ("t.csv", field(0, "12%"), "", not_number("12%")),
    "a currency": ("t.csv", field(0, "$5.00"), "", not_number("$5.00")),
    "a unit": ("t.csv", field(0, "3.5 cm"), "", not_number("3.5 cm")),
    "a hexadecimal": ("t.csv", field(0, "0x1F"), "", not_number("0x1F")),
    "a typographer's minus": ("t.csv", field(0, "−1.5"), "", not_number("−1.5")),
    "dates": ("t.csv", column([f"2024-01-{1 + i % 28:02d}" for i in range(N)]), "", error("t.csv, column 'x': holds date32[day], not numbers")),
    "yes and no": ("t.csv", column(["yes", "no"] * (N // 2)), "", error("t.csv, column 'x': row 0 is 'yes', not a number")),
    "an empty column": ("t.csv", column(""), "", error("t.csv, column 'x': row 0 is missing (60 such rows)")),
    # rows and columns
    "tabs": ("t.csv", text("\t"), "", SAME),
    "semicolons": ("t.csv", text(";"), "", SAME),
    "commas under another name": ("t.tsv", PLAIN, "", SAME),
    "blanks": ("t.csv", text(" "), "", error("t.csv: there is no column 'answers'; it has x y z answers; use --delimiter")),
    "blanks declared": ("t.csv", text(" "), "--delimiter ' '", SAME),
    "colons": ("t.csv", text(":"), "", error("it has x:y:z:answers; use --delimiter … to say what stands between columns")),
    "a wrong delimiter": ("t.csv", PLAIN, "--delimiter ';'", error("it has x,y,z,answers; use --delimiter")),
    "two marks as delimiter": ("t.csv", PLAIN, "--delimiter ',,'", error("delimiter: ',,' must be one mark")),
    r"\t as delimiter": ("t.csv", text("\t"), r"--delimiter '\t'", SAME),
    "Excel's sep=": ("t.csv", "sep=;\n" + text(";"), "", error("there is no column 'answers'; it has sep=;")),
    "quotes everywhere": ("t.csv", FULL.to_csv(index=False, quoting=1), "", SAME),
    "an open quote": ("t.csv", field(3, '"wren'), "", error("t.csv: row 9 opens a quote that is never closed")),
    "a line break in quotes": ("t.csv", FULL.assign(note="a\nb").to_csv(index=False), "", SAME),
    "a long row": ("t.csv", changed(10, lambda line: line + ",9"), "", error("t.csv: row 9 has 5 fields, but the first line has 4")),
    "a short row": ("t.csv", changed(10, lambda line: line.partition(",")[2]), "", error("t.csv: row 9 has 3 fields, but the first line has 4")),
    "a delimiter at the end": ("t.csv", PLAIN.replace("\n", ",\n"), "", SAME),
    "an empty file": ("t.csv", "", "", EMPTY),
    "a mark alone": ("t.csv", codecs.BOM_UTF8, "", EMPTY),
    "blank lines alone": ("t.csv", "\n\n\n", "", error("t.csv: there is no column 'answers'; it has none")),
    "a header alone": ("t.csv", "x,y,z,answers\n", "", EMPTY),
    "a header without line break": ("t.csv", "x,y,z,answers", "", EMPTY),
    "no header": ("t.csv", PLAIN.partition("\n")[2], "", error("there is no column 'answers'; it has 3.126, -0.132")),
    "a column twice": ("t.csv", PLAIN.replace("x,y", "x,x", 1), "", error("t.csv: the column 'x' occurs twice; rename one")),
    "a column without name": ("t.csv", PLAIN.replace("x,y", ",y", 1), "", error("there is no column 'x', which the model was trained on (3 features expected, 2 found); it has '', y")),
    "blanks in the header": ("t.csv", PLAIN.replace("x,y,z,answers", "x, y, z, answers", 1), "", error("there is no column 'answers'; it has x, ' y', ' z', ' answers'")),
    "capitals in the header": ("t.csv", PLAIN.replace("x,y,z,answers", "X,Y,Z,Answers", 1), "", error("there is no column 'answers'; it has X, Y, Z, Answers")),
    "columns in another order": ("t.csv", FULL[["z", "answers", "y", "x"]].to_csv(index=False), "", SAME),
    "no line break at the end": ("t.csv", PLAIN.rstrip("\n"), "", SAME),
    "line breaks of Windows": ("t.csv", PLAIN.replace("\n", "\r\n"), "", SAME),
    "line breaks of old": ("t.csv", PLAIN.replace("\n", "\r"), "", SAME),
    "line breaks of both kinds": ("t.csv", PLAIN.replace("\n", "\r\n", 5), "", SAME),
    "blank lines between rows": ("t.csv", PLAIN.replace("\n", "\n\n"), "", SAME),
    "a NUL": ("t.csv", PLAIN.replace("owl", "o\0l", 1), "", error("t.csv: byte 56 is 0, which text cannot hold; save")),
    "a comment on top": ("t.csv", "# by hand\n" + PLAIN, "", error("t.csv: row 0 has 4 fields, but the first line has 1")),
    "a comment below": ("t.csv", PLAIN + "# the end\n", "", error("t.csv: row 60 has 1 field, but the first line has 4")),
    "the index of pandas": ("t.csv", FULL.to_csv(), "", SAME),
    # formats
    "gzip": ("t.csv.gz", gzip.compress(PLAIN.encode()), "", SAME),
    "bzip2": ("t.csv.bz2", bz2.compress(PLAIN.encode()), "", SAME),
    "gzip under another name": ("t.csv", gzip.compress(PLAIN.encode()), "", error("t.csv: is a .gz file, not text; rename it to .csv.gz, or unpack it")),
    "text called gzip": ("t.csv.gz", PLAIN, "", error("t.csv.gz: cannot be read: zlib inflate failed")),
    "gzip cut off": ("t.csv.gz", gzip.compress(PLAIN.encode())[:-30], "", error("t.csv.gz: cannot be read: Truncated compressed stream")),
    "xz": ("t.csv.xz", lzma.compress(PLAIN.encode()), "", error("t.csv.xz: is a .xz file, not text; unpack it")),
    "a zip archive": ("t.zip", packed(archive), "", error("t.zip: is a zip archive, not an Excel workbook; unpack it")),
    "a zip archive called csv": ("t.csv", packed(archive), "", error("t.csv: is xlsx, not text; rename it to .xlsx, or unpack it")),
    "Excel": ("t.xlsx", packed(lambda file: FULL.to_excel(file, index=False)), "", SAME),
    "text called Excel": ("t.xlsx", PLAIN, "", error("t.xlsx: is not a readable Excel workbook (File is not a zip file); save it as .csv")),
    "old Excel": ("t.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0\0", "", BINARY),
    "a web page called Excel": ("t.xls", "<table><tr><td>x</td></tr></table>", "", error("t.xls: starts as a web page does; save the table as .csv")),
    "Parquet": ("t.parquet", packed(FULL.to_parquet), "", SAME),
    "Parquet called csv": ("t.csv", packed(FULL.to_parquet), "", error("t.csv: is parquet, not text; rename it to .parquet")),
    "text called Parquet": ("t.parquet", PLAIN, "", error("t.parquet: cannot be read: Parquet magic bytes not found")),
    "text called JSON lines": ("t.jsonl", PLAIN, "", error("t.jsonl: line 1 is not JSON")),
    "JSON lines": ("t.jsonl", jsonl(list), "", SAME),
    "JSON lines called JSON": ("t.json", jsonl(list), "", SAME),
    "JSON called JSON lines": ("t.jsonl", json.dumps(RECORDS), "", error("t.jsonl: line 1 is not a JSON object")),
    "JSON lines called csv": ("t.csv", jsonl(list), "", error("t.csv: starts as JSON does; rename it to .json or .jsonl")),
    "JSON called csv": ("t.csv", json.dumps(RECORDS), "", error("t.csv: starts as JSON does; rename it")),
    "JSON as pandas writes it": ("t.json", FULL.to_json(), "", error("t.json: is one object with a column in each field, as pandas writes it; write one object per row")),
    "JSON records": ("t.json", FULL.to_json(orient="records"), "", SAME),
    "JSON that breaks off": ("t.jsonl", jsonl(list)[:-20], "", error("t.jsonl: line 60 is not JSON")),
    "JSON without a field": ("t.jsonl", jsonl(list).replace('"x": ', '"u": ', 1), "", error("t.jsonl, column 'x': row 0 is missing (1 such rows); say how to fill them")),
    "JSON numbers as text": ("t.jsonl", jsonl(list).replace("3.126", '"3.126"', 1), "", error("t.jsonl: the column 'x' mixes float, str; give all its rows one type")),
    "no suffix": ("table", PLAIN, "", SAME),
    "a pickle": ("t.pkl", pickle.dumps(FULL), "", BINARY),
    "an array of numpy": ("t.npy", packed(lambda file: np.save(file, X)), "", error("t.npy: holds arrays, not a table with columns")),
    "a picture": ("t.csv", b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "", BINARY),
    # candidates
    "lists of pandas": ("t.csv", cells(quoted(repr)), "", SAME),
    "lists of numpy": ("t.csv", cells(lambda labels: "[" + " ".join(map(repr, labels)) + "]"), "", SAME),
    "lists of numpy's strings": ("t.csv", cells(quoted(lambda labels: repr([*map(np.str_, labels)]))), "", SAME),
    "arrays": ("t.csv", cells(quoted(lambda labels: repr(np.array(labels)))), "", SAME),
    "lists of JSON": ("t.csv", cells(quoted(json.dumps)), "", SAME),
    "sets of Python": ("t.csv", cells(quoted(lambda labels: repr(set(labels)))), "", SAME),
    "frozen sets": ("t.csv", cells(quoted(lambda labels: repr(frozenset(labels)))), "", SAME),
    "tuples": ("t.csv", cells(quoted(lambda labels: repr(tuple(labels)))), "", SAME),
    "vectors of R": ("t.csv", cells(quoted(lambda labels: "c(" + ", ".join(f'"{one}"' for one in labels) + ")")), "", SAME),
    "labels with numbers": ("t.csv", cells(quoted(lambda labels: repr(dict.fromkeys(labels, 0.5)))), "", warns("column 'answers': the numbers beside the labels are left out")),
    "brackets without quotes": ("t.csv", cells(quoted(lambda labels: "[" + ", ".join(labels) + "]")), "", warns(ONE + "'[owl, ant]'; write the labels of a row as ant|cat")),
    "commas between labels": ("t.csv", cells(quoted(", ".join)), "", warns(ONE + "'owl, ant'; use --separator , if ',' stands between labels")),
    "commas declared": ("t.csv", cells(quoted(", ".join)), "--separator ,", SAME),
    "semicolons between labels": ("t.csv", cells("; ".join), "", warns("use --separator ';' if ';' stands between labels")),
    "slashes between labels": ("t.csv", cells("/".join), "", warns("use --separator / if '/' stands between labels")),
    "blanks between labels": ("t.csv", cells(" ".join), "", warns(ONE + "'owl ant'; use --separator ' ' if ' ' stands between labels")),
    "and between labels": ("t.csv", cells(" and ".join), "", warns(ONE + "'owl and ant'; write the labels of a row as ant|cat")),
    "lines between labels": ("t.csv", cells(quoted("\n".join)), "", warns(ONE)),
    "blanks around the separator": ("t.csv", cells(" | ".join), "", SAME),
    "a separator at the end": ("t.csv", cells(lambda labels: "|".join(labels) + "|"), "", error("t.csv, column 'answers': row 0 has an empty label between separators")),
    "two separators": ("t.csv", field(3, "owl||ant"), "", error("t.csv, column 'answers': row 9 has an empty label between separators")),
    "a word as separator": ("t.csv", PLAIN, "--separator ' or '", error("separator: ' or ' cannot separate labels; use one character")),
    "a label twice in a set": ("t.csv", cells(lambda labels: "|".join([*labels, labels[0]])), "", SAME),
    "quotes around the set": ("t.csv", cells(lambda labels: "'" + "|".join(labels) + "'"), "", warns(ALIKE)),
    "bytes": ("t.csv", cells(quoted(lambda labels: repr([one.encode() for one in labels]))), "", error("t.csv, column 'answers': its lists hold binary, not labels")),
    "a mask of numbers": ("t.csv", cells(quoted(lambda labels: repr([int(one in labels) for one in NAMES]))), "", error("t.csv, column 'answers': rows of 3 zeros and ones look like a mask, but labels are expected")),
    "a mask of truth values": ("t.csv", cells(quoted(lambda labels: repr([one in labels for one in NAMES]))), "", error("rows of 3 zeros and ones look like a mask")),
    "a backslash": ("t.csv", field(3, r"ow\x"), "", error(r"row 9 has the label 'ow\\x', where \x is not an escape; write a backslash as \\")),
    "capitals": ("t.csv", PLAIN.replace("owl", "Owl", 5), "", warns(ALIKE + "'Owl' and 'owl'; write them alike")),
    "blanks around labels": ("t.csv", PLAIN.replace("owl\n", "owl \n", 3), "", SAME),
    "blanks that do not break": ("t.csv", PLAIN.replace("owl\n", "owl\u00a0\n", 5), "", warns(ALIKE + r"'owl' and 'owl\xa0'")),
    "blanks without width": ("t.csv", PLAIN.replace("owl\n", "owl\u200b\n", 5), "", warns(ALIKE + r"'owl' and 'owl\u200b'")),
    "letters in two forms": ("t.csv", PLAIN.replace("owl", "\u00fcl", 5).replace("owl", "u\u0308l"), "", warns(ALIKE)),
    "1 and 1.0": ("t.csv", PLAIN.replace("owl", "1", 9).replace("owl", "1.0"), "", warns(ALIKE + "'1' and '1.0'")),
    "1 and 01": ("t.csv", PLAIN.replace("owl", "1", 9).replace("owl", "01"), "", warns(ALIKE + "'01' and '1'")),
    "one list among words": ("t.csv", field(3, '"[""owl""]"'), "", warns(ALIKE)),
    **{f"{token} as a label": ("t.csv", field(3, token), "", warns(looks_missing(token))) for token in ("NA", "None", "nan", "null", "?", "-", "[]", "set()")},
}  # fmt: skip

# -------------------------------------------------------------------- commands

FIT = "fit plain.csv --candidates answers --learner em --out m"
OWN = "fit t.csv --candidates answers --learner em --out m"
CHECK = f"{OWN} --verified v"
JOINED = "fit rows.csv --candidates answers --key id --learner em --out m --labels"
VOTED = "fit rows.csv --votes v.csv --key id --annotator who --learner em --out m"
FILED = "fit full.csv --candidates answers --key id --ignore truth --learner em --out m --verified"
ASKED = "annotators v.csv --item id --annotator who --label label"
CAL = "conformalize --probabilities q.csv --labels full.csv --candidates answers --out c.cal"
TRIAGE = "triage --out ok.csv --review no.csv"
EVALUATE = "evaluate sets.csv --labels a.csv --truth truth --key id"
SUGGEST = "suggest model full.csv --candidates answers --out s.csv"
NUMBER = "Invalid value for '--confidence': "
OUTSIDE = "is not between 0 and 1 (exclusive)"
JOIN = ["|".join(labels) for labels in LISTS]
READ_RIGHT = {"rows": N, "features": 3, "classes": 3}


def answers(ids):
    return {"a.csv": csv(id=ids, answers=JOIN)}


def verified(values):
    return {"t.csv": FULL.assign(v=values).to_csv(index=False)}


def truths(values):
    return {"a.csv": csv(id=range(N), truth=values)}


def voted(**changes):
    return {"v.csv": votes(**changes)}


def scores(values, names=NAMES, **more):
    return {"q.csv": probabilities(values, names, **more)}


def spoiled(row, values=P):
    """Probabilities with another row 9."""
    return np.vstack([values[:9], [row], values[10:]])


COMMANDS = {  # files, a command line, and what happens
    # votes
    "votes in another order": ({"v.csv": "\n".join([votes().splitlines()[0], *votes().splitlines()[:0:-1]])}, VOTED, right(READ_RIGHT)),
    "votes without item": (voted(id=replaced(4, None)), VOTED, error("v.csv: row 4 has no id")),
    "votes of nobody": (voted(who=replaced(4, None)), VOTED, error("v.csv: row 4 has no who")),
    "votes without answer": (voted(label=replaced(4, None)), f"{ASKED} --json", right({"answers": 3 * N - 1})),
    "votes twice": ({"v.csv": votes() + "0,ann,wren,1.0\n"}, ASKED, warns("v.csv: annotator 'ann' gives 2 labels to item 0. In 1 of 60 rows several answers of one annotator count as one")),
    "votes that contradict": ({"v.csv": votes() + "0,ann,ant,1.0\n"}, ASKED, warns("v.csv: annotator 'ann' gives 2 labels to item 0. In 1 of 60 rows several answers")),
    "votes for an unknown label": (voted(label=replaced(4, "emu")), f"{VOTED} --classes 'wren|owl|ant'", error("v.csv: row 1: 'emu' is not among the 3 classes; use --classes")),
    "votes of negative weight": (voted(weight=replaced(4, -1)), f"{VOTED} --weight weight", error("v.csv: weight: row 1 has an answer of weight -1.0; use positive numbers")),
    "votes without weight": (voted(weight=replaced(4, None)), f"{VOTED} --weight weight", error("v.csv: weight: row 1 has an answer of weight nan")),
    "votes of endless weight": (voted(weight=replaced(4, "inf")), f"{VOTED} --weight weight", error("row 1 has an answer of weight inf")),
    "votes with words as weights": (voted(weight=replaced(4, "much")), f"{VOTED} --weight weight", error("v.csv: weight: holds something other than numbers (Failed to parse string: 'much'")),
    "an answer of two halves": ({"v.csv": votes().replace("1.0\n", "0.5\n") + "0,ann,ant,0.5\n"}, f"{ASKED} --weight weight --json", right({"answers": 3 * N, "rows": N})),
    "votes about other rows": ({"v.csv": votes() + "99,ann,ant,1.0\n"}, VOTED, warns("v.csv: 1 of 61 values of id are not in rows.csv and are not used")),
    "rows without votes": ({"v.csv": "\n".join(votes().splitlines()[:-3])}, VOTED, warns("v.csv: nobody answered 1 of 60 rows")),
    "votes without key": (voted(), "fit rows.csv --votes v.csv --out m", error("votes and verified labels are matched with the rows by an identifier; use --key … to name its column")),
    "votes and candidates": (voted(), f"{VOTED} --candidates answers", error("give either --candidates (a column) or --votes")),
    "votes of a column that is not there": (voted(), f"{VOTED} --label bird", error("v.csv: there is no column 'bird'; it has id, who, label, weight")),
    "votes by padded numbers": (voted(id=lambda ids: [f"{i:03d}" for i in ids]), VOTED, error("v.csv: no row with id = '0', which is row 0 of rows.csv; write them alike: it has '000'")),
    "votes in no lines": ({"v.csv": "id,who,label\n"}, VOTED, error("v.csv: holds no rows")),
    "votes in two spellings": (voted(label=replaced(4, "Owl")), VOTED, warns(f"v.csv: {ALIKE}'Owl' and 'owl'")),
    "votes for NA": (voted(label=replaced(4, "NA")), VOTED, warns("v.csv: the class 'NA' looks like a missing label")),
    "votes in columns": ({"v.csv": csv(id=range(N), ann=TRUTH, bob=TRUTH)}, VOTED, error("v.csv: there is no column 'who'; it has id, ann, bob")),
    "votes of one model": ({"v.jsonl": "".join(json.dumps({"id": i, "answers": [label, label, "owl"]}) + "\n" for i, label in enumerate(TRUTH))}, "fit rows.csv --votes v.jsonl --key id --learner em --out m", warns("v.jsonl: annotator 'model' gives 3 labels to item 0. In 60 of 60 rows")),
    "votes of one annotator": (voted(who=lambda column: ["llm"] * len(column)), VOTED, warns("v.csv: annotator 'llm' gives 3 labels to item 0. In 60 of 60 rows")),
    "votes of one model, once": ({"v.jsonl": "".join(json.dumps({"id": i, "prediction": [{"label": label, "probability": 0.9}]}) + "\n" for i, label in enumerate(TRUTH))}, "fit rows.csv --votes v.jsonl --key id --learner em --out m", right(READ_RIGHT)),
    "votes by another key": (voted(), "fit rows.csv --votes v.csv --key nr --annotator who --learner em --out m", error("rows.csv: there is no column 'nr'; it has x, y, z, id")),
    "votes whose key is called otherwise": ({"v.csv": votes().replace("id,", "task,", 1)}, VOTED, error("v.csv: there is no column 'id'; it has task, who, label, weight; use --item … to name its column of items")),
    "votes whose key is named": ({"v.csv": votes().replace("id,", "task,", 1)}, f"{VOTED} --item task", right(READ_RIGHT)),
    "annotators without answers": (voted(label=lambda column: [""] * len(column)), ASKED, error("v.csv: there is no answer")),
    "annotators in the column of items": ({}, "annotators votes.csv --item id --annotator id --label label", error("votes.csv: the column 'id' is named twice")),
    "annotators in a column that is not there": ({}, "annotators votes.csv --item id --annotator me --label label", error("votes.csv: there is no column 'me'")),
    # keys
    "a key twice": (answers([0, *range(N - 1)]), f"{JOINED} a.csv", error("a.csv: id = '0' occurs twice; one row per value is needed")),
    "a key twice in the rows": ({"rows.csv": FRAME.assign(id=[0, *range(N - 1)]).to_csv(index=False)}, f"{JOINED} answers.csv", warns("answers.csv: 1 of 60 values of id are not in rows.csv and are not used")),
    "a key that is missing": (answers([None, *range(1, N)]), f"{JOINED} a.csv", error("a.csv: row 0 has no id; give it one")),
    "a key missing in the rows": ({"rows.csv": FRAME.assign(id=["", *range(1, N)]).to_csv(index=False)}, f"{JOINED} answers.csv", error("rows.csv: row 0 has no id; give it one")),
    "keys 1 and 01": (answers([f"{i:02d}" for i in range(N)]), f"{JOINED} a.csv", error("a.csv: no row with id = '0', which is row 0 of rows.csv")),
    "keys 1 and 1.0": (answers([float(i) for i in range(N)]), f"{JOINED} a.csv", error("which is row 0 of rows.csv; write them alike: it has '0.0'")),
    "keys with blanks": (answers([f"{i} " for i in range(N)]), f"{JOINED} a.csv", error("which is row 0 of rows.csv; write them alike: it has '0 '")),
    "keys as text and as numbers": ({"a.parquet": packed(pd.DataFrame({"id": [*map(str, range(N))], "answers": JOIN}).to_parquet)}, f"{JOINED} a.parquet", right(READ_RIGHT)),
    "a key that rows lack": ({}, "fit plain.csv --labels answers.csv --candidates answers --key id --out m", error("plain.csv: there is no column 'id'; it has x, y, z, answers")),
    "a key that labels lack": ({"a.csv": csv(nr=range(N), answers=JOIN)}, f"{JOINED} a.csv", error("a.csv: there is no column 'id'; it has nr, answers")),
    "no key and another order": ({}, "fit rows.csv --labels answers.csv --candidates answers --ignore id --out m", error("answers.csv: the column 'id' names the rows of rows.csv in another order; use --key id")),
    "no key and more rows": ({"a.csv": csv(answers=[*JOIN, "owl"])}, "fit rows.csv --labels a.csv --candidates answers --ignore id --out m", error("a.csv: 61 rows for 60 rows of rows.csv; use --key")),
    # verified labels
    "verified as an unknown label": (verified(["emu", *CHECKED[1:]]), CHECK, error("verified: row 0 holds 'emu', which is not among the classes")),
    "verified outside the candidates": (verified(["ant", *CHECKED[1:]]), f"{CHECK} --strategy max", warns("verified: the label of row 0 is 'ant', which is not among its candidates {'wren'}")),
    "verified nowhere": (verified(""), CHECK, warns("verified: no row has a label; leave it out")),
    "verified NA": (verified([one or "NA" for one in CHECKED]), CHECK, error("verified: row 0 holds 'NA', which is not among the classes")),
    "verified with capitals": (verified([one and one.title() for one in CHECKED]), CHECK, error("verified: row 1 holds 'Owl', which is not among the classes")),
    "verified as two labels": (verified(["owl|ant", *CHECKED[1:]]), CHECK, error("verified: row 0 holds 'owl|ant', which is not among the classes")),
    "verified in a column that is not there": ({}, "fit full.csv --candidates answers --verified me --out m", error("--verified: 'me' is neither a column of full.csv (x, y, z, id, answers, truth) nor a file")),
    "checks without key": ({}, "fit full.csv --candidates answers --verified checks.csv --ignore id --ignore truth --out m", error("votes and verified labels are matched with the rows by an identifier; use --key … to name its column")),
    "checks twice": ({"c.csv": csv(id=[1, 1], verified=["owl", "ant"])}, f"{FILED} c.csv", error("c.csv: id = '1' has 2 verified labels; keep one of them")),
    "checks of other rows": ({"c.csv": csv(id=[1, 99], verified=["owl", "ant"])}, f"{FILED} c.csv", error("full.csv: no row with id = '99', which is row 1 of c.csv")),
    "checks as an unknown label": ({"c.csv": csv(id=[1], verified=["emu"])}, f"{FILED} c.csv", error("c.csv: id = '1' has the label 'emu', which is not one of 'ant', 'owl', 'wren'; correct it, or use --classes")),
    "checks without labels": ({"c.csv": csv(id=[1], verified=[None])}, f"{FILED} c.csv", warns("verified: no row has a label")),
    "checks in another column": ({"c.csv": csv(id=[1], checked=["owl"])}, f"{FILED} c.csv", error("c.csv: there is no column 'verified'; it has id, checked; use --verified c.csv:COLUMN to name that of true labels")),
    "checks that are not there": ({}, f"{FILED} c.csv", error("--verified: 'c.csv' is neither a column of full.csv (x, y, z, id, answers, truth) nor a file")),
    # probabilities
    "probabilities halved": (scores(P / 2), CAL, error("q.csv: row 0 sums to 0.5, not to 1 (tolerance 0.01); divide each row by its sum")),
    "logits": (scores(3 * X), CAL, error("these look like logits: pass their softmax")),
    "percentages": (scores(100 * P), CAL, error("q.csv: row 0 sums to 100; these look like percentages: divide them by 100")),
    "percentages of new rows": (scores(100 * P), "predict model.cal --probabilities q.csv --out s.csv", error("these look like percentages")),
    "a negative probability": (scores(spoiled([1.2, -0.1, -0.1])), CAL, error("q.csv: row 9 has entries from -0.1 to 1.2, outside [0, 1]")),
    "a missing probability": (scores(spoiled([np.nan] * 3)), CAL, error("q.csv, column 'wren': row 9 is missing")),
    "probabilities without a class": (scores(P[:, :2] / P[:, :2].sum(1, keepdims=True), NAMES[:2]), CAL, error("full.csv, column 'answers': row 2: 'ant' is not among the 2 classes")),
    "probabilities of other classes": (scores(P, ["a", "b", "c"]), CAL, error("full.csv, column 'answers': row 0: 'wren' is not among the 3 classes")),
    "probabilities of new rows, of other classes": (scores(P, ["a", "b", "c"]), "predict model.cal --probabilities q.csv --out s.csv", error("q.csv: there is no column 'wren', which is one of the 3 classes; it has a, b, c")),
    "probabilities in another order": (scores(P[:, ::-1], NAMES[::-1]), f"{CAL} --json", right({"rows": N, "classes": NAMES[::-1], "calibrated_on": N})),
    "one column of probabilities": ({"q.csv": csv(owl=P[:, 1])}, CAL, error("q.csv: 1 column of probabilities; at least two classes are needed")),
    "probabilities with signs": ({"q.csv": csv(**{name: [f"{100 * p:.1f}%" for p in P[:, k]] for k, name in enumerate(NAMES)})}, CAL, error("q.csv, column 'wren': row 0 is '89.1%', not a number")),
    "probabilities transposed": ({"q.csv": pd.DataFrame(P.T).to_csv(index=False)}, CAL, error("full.csv, column 'answers': row 0: 'wren' is not among the 60 classes")),
    "probabilities with the index of pandas": ({"q.csv": pd.DataFrame(P, columns=NAMES).to_csv()}, CAL, error("q.csv: a column has no name, as the index that pandas writes; use --ignore ''")),
    "that index ignored": ({"q.csv": pd.DataFrame(P, columns=NAMES).to_csv()}, f"{CAL} --ignore '' --json", right({"rows": N, "classes": NAMES})),
    "probabilities of fewer rows": (scores(P[1:]), CAL, error("full.csv: 60 rows for 59 rows of q.csv; use --key")),
    "probabilities in another order of rows": (scores(P[::-1], id=range(N)[::-1]), f"{CAL} --ignore id", error("full.csv: the column 'id' names the rows of q.csv in another order; use --key id")),
    "a matrix that is not there": ({}, "conformalize --probabilities p.csv --labels full.csv --candidates answers --assume r.csv --out c.cal", error("--assume: 'r.csv' is no file; name one, or use nothing, uniform, class or independent")),
    "a matrix of another shape": ({"r.npy": packed(lambda file: np.save(file, np.eye(2)))}, "conformalize --probabilities p.csv --labels full.csv --candidates answers --strategy corrected --assume r.npy --out c.cal", error("assume: got shape (2, 2); a 3 × 3 matrix of probabilities is expected")),
    # levels and other numbers
    **{f"confidence {level}": ({}, f"{FIT} --confidence {level}", error(words)) for level, words in {"0": OUTSIDE, "1": OUTSIDE, "1.5": OUTSIDE, "-0.9": OUTSIDE, "90": "did you mean 0.9?", "nan": "confidence_level: expected a finite number", "90%": NUMBER, "0,9": NUMBER}.items()},
    "confidence 0.1": ({}, f"{FIT} --confidence 0.1", warns("confidence_level: 0.1 asks for sets that miss the truth in most rows; use --confidence 0.9 if this was meant as the error rate")),
    "confidence 0.1 of new rows": ({}, "predict model rows.csv --out s.csv --confidence 0.1", warns("use --confidence 0.9 if this was meant as the error rate")),
    "confidence 0.1 of a calibration": ({}, "predict model.cal --probabilities p.csv --out s.csv --confidence 0.1", warns("use --confidence 0.9 if this was meant as the error rate")),
    "confidence 90 of new rows": ({}, "predict model rows.csv --out s.csv --confidence 90", error("did you mean 0.9?")),
    "alpha": ({}, f"{FIT} --alpha 0.1", error("No such option: --alpha (Possible options: --help). The error rate alpha is given as --confidence")),
    "a miss rate of 2": ({}, f"{FIT} --miss-rate 2", error("miss_rate: 2.0 is not in [0, 1)")),
    "nothing to calibrate on": ({}, f"{FIT} --calibration-size 0", error("calibration_size: 0.0 of n_samples=60")),
    "more folds than rows": ({}, f"{FIT} --cross 1000", error("cv: 1000 folds of 60 rows")),
    "a seed in words": ({}, f"{FIT} --seed lucky", error("Invalid value for '--seed'")),
    "an unknown strategy": ({}, f"{FIT} --strategy maximum", error("strategy: 'maximum' is not known; use one of auto, max")),
    "a mixture of weight 2": ({}, f"{FIT} --strategy mixture:2", error("mu: 2.0 is not in [0, 1]")),
    "an unknown score": ({}, f"{FIT} --conformity-score softmax", error("conformity_score: 'softmax' is not known; use one of lac")),
    "an unknown filling": ({}, f"{FIT} --impute mode", error("--impute: 'mode' is not median, mean or a number")),
    "classes too few": ({}, f"{FIT} --classes 'wren|owl'", error("plain.csv, column 'answers': row 2: 'ant' is not among the 2 classes; use --classes")),
    "a class twice": ({}, f"{FIT} --classes 'wren|owl|ant|owl'", error("classes: the label 'owl' occurs twice")),
    # fit
    "one class": ({"t.csv": FULL.assign(answers="owl").to_csv(index=False)}, OWN, error("y: 1 class, 'owl'; prediction sets need at least two")),
    "every label in every row": ({"t.csv": FULL.assign(answers="|".join(NAMES)).to_csv(index=False)}, f"{OWN} --json", right({"candidates_per_row": 3.0, "covering_rate": 1.0})),
    "a row without labels": ({"t.csv": field(3, "")}, OWN, error("t.csv, column 'answers': row 9 has no labels (1 such rows); use --missing full")),
    "no row with labels": ({"t.csv": FULL.assign(answers="").to_csv(index=False)}, OWN, error("row 0 has no labels (60 such rows)")),
    "one row": ({"t.csv": "\n".join([*lines()][:2])}, OWN, error("y: 1 class, 'wren'; prediction sets need at least two")),
    "an identifier among the features": ({}, "fit full.csv --candidates answers --ignore truth --learner em --out m", warns("full.csv: the column 'id' has another value in every row, like an identifier; use --ignore id")),
    "the truth among the features": ({}, "fit full.csv --candidates answers --ignore id --one-hot --learner em --out m", warns("full.csv: the column 'truth' holds labels; if it is the truth, new rows will lack it; use --ignore truth")),
    "the truth as a number": ({"t.csv": FULL.assign(code=Y).to_csv(index=False)}, OWN, warns("t.csv: the column 'code' tells which label is a candidate in every row")),
    "text among the features": ({"t.csv": FULL.assign(colour="red").to_csv(index=False)}, OWN, error("t.csv, column 'colour': row 0 is 'red', not a number; use --one-hot")),
    "no features": ({"t.csv": csv(answers=JOIN)}, OWN, error("t.csv: no column is left for the features")),
    "a gap to be filled": ({"t.csv": field(0, "")}, OWN, error("t.csv, column 'x': row 9 is missing (1 such rows); use --impute median")),
    "a feature that is not there": ({}, f"{FIT} --features w", error("plain.csv: there is no column 'w'")),
    "candidates among the features": ({}, f"{FIT} --features answers", error("'answers' is named both as a feature and as something else")),
    "an ignored column that is not there": ({}, f"{FIT} --ignore id", error("plain.csv: there is no column 'id'")),
    "a row without category": ({"t.csv": FULL.assign(h=["a"] * 59 + [""]).to_csv(index=False)}, f"{OWN} --by h", error("t.csv, column 'h': row 59 has no category; give it one")),
    "no candidates named": ({}, "fit plain.csv --out m", error("give either --candidates (a column) or --votes")),
    "a model that is there": ({}, "fit plain.csv --candidates answers --out model", error("model exists already; use --force to replace it")),
    "a file in the model's place": ({}, "fit plain.csv --candidates answers --out p.csv --force", error("p.csv: is a file; a model is saved as a directory")),
    "a folder of other things": ({"work/mine.txt": "mine"}, "fit plain.csv --candidates answers --out work --force", error("work: holds other files and no model; choose a new directory")),
    # predict
    "the training rows": ({}, "predict model train.csv --out s.csv --json", warns("train.csv: 60 rows (100%, the first is row 0) were learned from or calibrated on. Guaranteed: nothing for these rows")),
    "rows of another kind": ({"r.csv": (FRAME + 50).to_csv(index=False)}, "predict model r.csv --out s.csv", warns("r.csv: The 60 new rows differ from the 12 calibration rows")),
    "no model": ({}, "predict nowhere rows.csv --out s.csv", error("nowhere: there is no such model directory")),
    "half a model": ({"half/model.json": "{}"}, "predict half rows.csv --out s.csv", error("half: not a model directory; it has no setwise.json")),
    "a model of another version": ({"model/setwise.json": '{"format": "setwise-model", "version": 999}'}, "predict model rows.csv --out s.csv", error("model")),
    "a table as model": ({}, "predict plain.csv rows.csv --out s.csv", error("plain.csv: is a file; a calibration file needs probabilities; use --probabilities")),
    "model and rows exchanged": ({}, "predict rows.csv model --out s.csv", error("model: is a model, but a table is expected; name the model first")),
    "a calibration without probabilities": ({}, "predict model.cal rows.csv --out s.csv", error("model.cal: is a file; a calibration file needs probabilities; use --probabilities")),
    "rows and probabilities": ({}, "predict model rows.csv --probabilities p.csv --out s.csv", error("give a FILE of new rows for a model, or --probabilities FILE for a calibration")),
    "no output": ({}, "predict model rows.csv", error("Missing option '--out'")),
    "an output in no folder": ({}, "predict model rows.csv --out no/s.csv", error("/no does not exist")),
    "an output that is there": ({}, "predict model rows.csv --out p.csv", error("p.csv exists already; use --force to replace it")),
    "an output that is a folder": ({}, "predict model rows.csv --out model --force", error("model: holds a model; name another folder")),
    "an output that cannot be written": ({}, f"predict model rows.csv --out {'s' * 300}.csv", error("ssss.csv: File name too long.")),
    "an output folder that is read": ({"parts/1.csv": PLAIN}, "predict model parts --out parts --force", error("parts/1.csv: is read, and would be replaced; name another folder")),
    "an output of another format": ({}, "predict model rows.csv --out s.xlsx", error("s.xlsx: rows are not written as xlsx; use .parquet, .csv")),
    "an output without suffix": ({}, "predict model rows.csv --out s --json", right({"rows": N, "out": "s", "files_kept": 0})),
    "a column in the sets' place": ({"r.csv": FRAME.assign(labels=1).to_csv(index=False)}, "predict model r.csv --out s.csv", error("there is a column 'labels' already, and the sets need it; rename it, or use --column")),
    "categories of a model without": ({}, "predict model rows.csv --out s.csv --by id", error("model: was not calibrated by a column of categories; leave it out")),
    "too few features named": ({}, "predict model rows.csv --out s.csv --features x", error("X has 1 features, but StandardScaler is expecting 3 features")),
    "a file that is not there": ({}, "predict model no.csv --out s.csv", error("no.csv: there is no such file")),
    "a pattern of no file": ({}, "predict model 'no/*.csv' --out s.csv", error("no/*.csv: no file has such a name")),
    "a folder": ({"parts/1.csv": PLAIN}, "predict model parts --out s.csv --json", right({"rows": N, "out": "s.csv"})),
    "nothing on standard input": ({}, "predict model - --out -", error("standard input: is empty")),
    "JSON and sets on standard output": ({}, "predict model rows.csv --out - --json", error("--json: standard output is taken by --out -; name a file with --out")),
    # evaluate
    "nothing to evaluate against": ({}, "evaluate sets.csv", error("give --truth COLUMN, or --candidates COLUMN")),
    "truth that is not there": ({}, "evaluate sets.csv --truth truth", error("sets.csv: there is no column 'truth'; it has id, labels, size")),
    "a table without sets": ({}, "evaluate full.csv --truth truth", error("full.csv: there is no column 'labels'; it has x, y, z")),
    "truth with capitals": (truths([one.title() for one in TRUTH]), EVALUATE, warns("some true labels are in no set at all, and count as missed (60 of them); the first is 'Wren' (row 0)")),
    "truth as codes": (truths(Y), EVALUATE, warns("(row 0); write labels as the sets do ('ant')")),
    "one true label unknown": (truths(["emu", *TRUTH[1:]]), EVALUATE, warns("some true labels are in no set at all, and count as missed (1 of them); the first is 'emu' (row 0)")),
    "truth NA": (truths(["NA", *TRUTH[1:]]), EVALUATE, warns("a.csv: the class 'NA' looks like a missing label")),
    "truth of no row": (truths([None] * N), EVALUATE, error("y: no row has a true label; use --candidates")),
    "truth of fewer rows": ({"a.csv": csv(id=range(N - 1), truth=TRUTH[1:])}, EVALUATE, error("a.csv: no row with id = '59', which is row 59 of sets.csv")),
    "truth in another order": ({}, "evaluate sets.csv --labels answers.csv --truth truth", error("answers.csv: the column 'id' names the rows of sets.csv in another order; use --key id")),
    "a key without labels": ({}, "evaluate sets.csv --truth id --key id", error("--key: matches the rows of --labels FILE, which is not given; leave out --key")),
    # report
    "a report on nothing": ({}, "report nowhere --out r.html", error("nowhere: there is no such file or directory")),
    "a report on a model alone": ({}, "report model --out r.html", error("model: give a FILE of new rows for a model")),
    "a report that is there": ({"r.html": "mine"}, "report sets.csv --out r.html", error("r.html exists already; use --force")),
    "a report on a table without sets": ({}, "report plain.csv --out r.html", error("plain.csv: there is no column 'labels'; it has x, y, z, answers")),
    "a report with labels in another table": ({}, "report sets.csv --labels answers.csv --truth truth --key id --out r.html --json", right({"out": "r.html"})),
    "a report with labels in another order": ({}, "report sets.csv --labels answers.csv --truth truth --out r.html", error("answers.csv: the column 'id' names the rows of sets.csv in another order; use --key id")),
    "a report with a key alone": ({}, "report sets.csv --key id --out r.html", error("--key: matches the rows of --labels or --votes FILE, which is not given; leave out --key")),
    "a report on the training rows": ({}, "report model train.csv --truth truth --out r.html", warns("60 rows (100%, the first is row 0) were learned from or calibrated on")),
    "a picture of another size": ({}, "report model rows.csv --image 28x28 --out r.html", error("--image: 28x28 is not the shape of 3 features")),
    "names that are not there": ({}, "report sets.csv --ids nr --out r.html", error("sets.csv: there is no column 'nr'")),
    **{f"a run noted as {noted}": ({"demo/run.json": noted}, "report demo --out r.html", error("demo/run.json: a run file with a broken or missing part")) for noted in ("{", "{}", "[]")},
    # triage
    "triage of nothing": ({}, TRIAGE, error("give a MODEL with verified rows, or --votes FILE")),
    "triage into one file": ({}, "triage checked rows.csv --out ok.csv --review ok.csv", error("--review: is the file of --out; name another one")),
    "triage without checks": ({}, f"{TRIAGE} model rows.csv", error("model: was calibrated without verified labels")),
    "triage of 5 wrong": ({}, f"{TRIAGE} checked rows.csv --max-error 5", error("max_error: 5.0 is not between 0 and 1 (exclusive); did you mean 0.05?")),
    "triage in an unknown mode": ({}, f"{TRIAGE} checked rows.csv --mode safe", error("mode: 'safe' is not known; use --mode overall, or use --mode accepted, or use --mode average")),
    "triage of a table as model": ({}, f"{TRIAGE} rows.csv", error("rows.csv: is a table; name a MODEL before it, or --votes FILE")),
    "triage of votes without checks": ({}, f"{TRIAGE} --votes votes.csv --item id --annotator who", error("--verified: votes alone do not show who is right")),
    "triage of rows with the answer's column": ({"r.csv": FRAME.assign(label="a").to_csv(index=False)}, f"{TRIAGE} checked r.csv", error("there is a column 'label' already, and the output needs it; rename it, or use --answer")),
    "triage without a feature": ({"r.csv": FRAME[["x", "y"]].to_csv(index=False)}, f"{TRIAGE} checked r.csv", error("r.csv: there is no column 'z', which the model was trained on (3 features expected, 2 found); it has x, y")),
    # suggest
    "a budget of nothing": ({}, f"{SUGGEST} --budget 0", error("Invalid value for '--budget'")),
    "a budget beyond the rows": ({}, f"{SUGGEST} --budget 1000", error("budget: 1000 of 60 rows")),
    "a suggestion without candidates": ({}, "suggest model full.csv --budget 10 --out s.csv", error("give either --candidates (a column) or --votes")),
    "a suggestion on new labels": ({"t.csv": PLAIN.replace("owl", "emu", 3)}, "suggest model t.csv --candidates answers --budget 10 --out s.csv", error("t.csv, column 'answers': row 1: 'emu' is not among the 3 classes")),
    "a suggestion with the answer's column": ({"t.csv": FULL.assign(verified="").to_csv(index=False)}, "suggest model t.csv --candidates answers --budget 10 --out s.csv", error("there is a column 'verified' already, and the output needs it")),
    # convert, contaminate, inspect, data
    "convert a column that is not there": ({}, "convert plain.csv --candidates no --out o.csv", error("plain.csv: there is no column 'no'")),
    "convert a table to votes": ({}, "convert plain.csv --candidates answers --to votes --out o.csv", error("--to: 'votes' cannot be made from table; use candidates, or --from votes")),
    "convert from an unknown kind": ({}, "convert plain.csv --from excel --out o.csv", error("--from: 'excel' is not known; use table, votes, label-studio or answers")),
    "convert votes without naming columns": ({}, "convert votes.csv --from votes --out o.csv", error("votes.csv: there is no column 'annotator'; it has id, who")),
    "convert an export without tasks": ({"l.json": "[]"}, "convert l.json --from label-studio --out o.csv", error("l.json: holds no tasks")),
    "convert an export of something else": ({"l.json": "[1, 2]"}, "convert l.json --from label-studio --out o.csv", error("l.json: task 0 is not a JSON object; export as JSON or JSON-MIN")),
    "convert to an unknown format": ({}, "convert plain.csv --candidates answers --out o.docx", error("o.docx: the suffix .docx shows no known format")),
    "contaminate with probability 2": ({}, "contaminate full.csv --truth truth --p 2 --out o.csv", error("p: 2.0 is not between 0 and 1")),
    "contaminate a gap": ({"t.csv": csv(truth=[None, *TRUTH[1:]])}, "contaminate t.csv --truth truth --out o.csv", error("t.csv: row 0 has no true label")),
    "contaminate NA": ({"t.csv": csv(truth=["NA", *TRUTH[1:]])}, "contaminate t.csv --truth truth --out o.csv", warns("t.csv: the class 'NA' looks like a missing label")),
    "contaminate one class": ({"t.csv": csv(truth=["owl"] * N)}, "contaminate t.csv --truth truth --out o.csv", error("n_classes: 1; contamination needs a wrong label to add")),
    "inspect without candidates": ({}, "inspect plain.csv", error("Missing option '--candidates'")),
    "inspect truth that is not there": ({}, "inspect plain.csv --candidates answers --truth no", error("plain.csv: there is no column 'no'")),
    "fetch an unknown set": ({}, "datasets fetch iris", error("name: 'iris' is not a known set; known are mnist")),
    "an unknown command": ({}, "train plain.csv", error("No such command 'train'")),
    "an option without value": ({}, "fit plain.csv --candidates answers --out", error("Option '--out' requires an argument")),
}  # fmt: skip

# -------------------------------------------------------------------- the library

NAMED = np.array(TRUTH)
CODES = [[NAMES.index(label) for label in labels] for labels in LISTS]
COUNTED = conformalize(P, Y)  # calibrations of the classes 0, 1, 2 and by their names
CALLED = conformalize(P, NAMED, classes=NAMES)
MODEL = ConformalClassifier(GaussianNB(), random_state=0).fit(OTHER, NAMED)
FRAMED = ConformalClassifier(GaussianNB(), random_state=0).fit(pd.DataFrame(OTHER, columns=list("xyz")), NAMED)
SIZES = MODEL.predict_set(X).sizes.tolist()
INDEXED = FRAME.set_index(pd.MultiIndex.from_product([range(6), range(10)]))
MASKED = np.ma.masked_greater(X, 4)
THREE = sorted(NAMES)
NO_PROBABILITIES = "gives no probabilities (it has no predict_proba); wrap it in sklearn.calibration"
TWO_D = "could be a mask or a table of labels; use LabelSets.from_mask"


class Nameless:
    """A trained model that does not say which class a column means."""

    def predict_proba(self, rows):
        return np.full((len(rows), 3), 1 / 3)


class Reversed(Nameless):
    classes_ = np.array(["wren", "owl", "ant"])  # in another order than sorted

    def predict_proba(self, rows):
        return np.tile([0.7, 0.2, 0.1], (len(rows), 1))


def fit(y=NAMED, rows=X, estimator=None, given=None, **options):
    model = ConformalClassifier(GaussianNB() if estimator is None else estimator, random_state=0, **options)
    return model.fit(rows, y, **(given or {}))


def classes(*args, **options):
    return fit(*args, **options).classes_.tolist()


def sizes(rows, new, estimator=None, y=NAMED):
    """How large the sets of new rows are after learning from others of the same kind."""
    return fit(y, rows, estimator).predict_set(new).sizes.tolist()


def first(label, others=LISTS):
    return [label, *others[1:]]


LINEAR = sizes(OTHER, X, LogisticRegression())
CALLS = {  # a call, and what happens
    # y
    "sets": (lambda: classes([set(labels) for labels in LISTS]), right(THREE)),
    "tuples": (lambda: classes([tuple(labels) for labels in LISTS]), right(THREE)),
    "a generator": (lambda: classes(labels for labels in LISTS), right(THREE)),
    "a series of lists": (lambda: classes(pd.Series(LISTS)), right(THREE)),
    "lists of polars": (lambda: classes(pl.Series(LISTS)), right(THREE)),
    "a label twice in a list": (lambda: LabelSets.from_lists([["a", "a", "b"], ["b"]]).to_lists(), right([["a", "b"], ["b"]])),
    "labels in one text": (lambda: fit(["|".join(labels) for labels in LISTS]), error("y: 'owl|ant' is made of other labels of y; use LabelSets.from_strings(y, sep='|')")),
    "labels with commas in one text": (lambda: fit([", ".join(labels) for labels in LISTS]), error("use LabelSets.from_strings(y, sep=',')")),
    "an empty list": (lambda: fit(first([])), error("y: row 0 is empty; leave it out, or use LabelSets.fill_empty()")),
    "None": (lambda: fit(first(None)), error("y: row 0 is empty")),
    "None in a list": (lambda: fit(first(["owl", None])), error("y: row 0: a label is missing (None or NaN); remove it from the set")),
    "a list in a list": (lambda: fit(first([["owl"]])), error("y: labels must be hashable")),
    "probabilities of labels": (lambda: fit([dict.fromkeys(labels, 0.5) for labels in LISTS]), error("y: from_lists: row 0 is {'wren': 0.5}, not a collection of labels")),
    "a dict": (lambda: fit(dict(enumerate(LISTS))), error("y: expected one set of labels per row, got a dict; pass its values")),
    "bytes beside text": (lambda: fit(first([b"owl"])), warns(f"y: {ALIKE}'owl' and b'owl'")),
    "capitals": (lambda: fit(first(["Owl"])), warns(f"y: {ALIKE}'Owl' and 'owl'")),
    "a blank": (lambda: fit(first(["owl "])), warns(f"y: {ALIKE}'owl ' and 'owl'")),
    "letters in two forms": (lambda: fit(["\u00fcl" if i % 2 else "u\u0308l" for i in range(N)]), warns(f"y: {ALIKE}")),
    "1 and '1'": (lambda: fit(first(["1"], CODES)), warns(f"y: {ALIKE}'1' and 1")),
    "1 and 1.0": (lambda: [float(label) for label in classes(first([1.0], CODES))], right([0.0, 1.0, 2.0])),
    "nan as text": (lambda: fit(first("nan", TRUTH)), warns("y: the class 'nan' looks like a missing label; leave it empty, or use classes=…")),
    "one class": (lambda: fit(["owl"] * N), error("y: 1 class, 'owl'; prediction sets need at least two")),
    "every label in every row": (lambda: set(fit([NAMES] * N).predict_set(OTHER).sizes.tolist()), right({3})),
    "a mask of numbers": (lambda: fit(MASK.astype(int)), error(TWO_D)),
    "a mask of numbers in lists": (lambda: fit(MASK.astype(int).tolist()), error("y: rows of zeros and ones look like a mask; use LabelSets.from_mask")),
    "a mask transposed": (lambda: fit(MASK.T), error("y: 3 rows for 60 rows of X")),
    "a mask with names": (lambda: classes(pd.DataFrame(MASK, columns=NAMES)), right(NAMES)),
    "probabilities": (lambda: fit(P), error(TWO_D)),
    "counts": (lambda: fit(2 * MASK), error("Votes.from_counts for counts")),
    "a text": (lambda: fit("owl"), error("y: expected one set of labels per row, got 'owl'")),
    "no y": (lambda: fit(None), error("requires y to be passed, but the target y is None; pass candidate sets or labels")),
    "y of fewer rows": (lambda: fit(NAMED[1:]), error("y: 59 rows for 60 rows of X")),
    "measurements": (lambda: fit(X[:, 0]), error("y: Unknown label type: continuous, such as -2.398; pass classes")),
    "whole floats": (lambda: classes(Y.astype(float)), right([0.0, 1.0, 2.0])),
    "NaN among codes": (lambda: fit(first(np.nan, Y)), error("y: row 0 is empty")),
    "truth values": (lambda: classes(Y > 0), right([False, True])),
    "categories": (lambda: classes(pd.Series(NAMED, dtype="category")), right(THREE)),
    "a missing category": (lambda: fit(pd.Series(first(None, TRUTH), dtype="category")), error("y: row 0 is empty")),
    "pandas' integers": (lambda: classes(pd.Series(Y, dtype="Int64")), right([0, 1, 2])),
    "pandas' integers with NA": (lambda: fit(pd.Series(first(None, Y), dtype="Int64")), error("y: row 0 is empty")),
    "masked labels": (lambda: fit(np.ma.masked_equal(Y, 2)), error("y: row 2 is empty")),
    "two columns of labels": (lambda: fit(pd.DataFrame({"a": TRUTH, "b": TRUTH})), error("y: mask: row 0 holds wren; a mask is True/False or 0/1")),
    "one column of labels": (lambda: fit(pd.DataFrame({"a": TRUTH})), warns("A column-vector y was passed when a 1d array was expected")),
    "three dimensions": (lambda: fit(np.ones((N, 3, 2), bool)), error("y: expected a mask of shape (rows, classes), got shape (60, 3, 2)")),
    # X
    "one feature as a vector": (lambda: fit(rows=X[:, 0]), error("Expected 2D array, got 1D array instead")),
    "NaN with candidates": (lambda: fit(SETS, np.where(X[9, 0] == X, np.nan, X)), error("X: row 9 holds NaN in column 0; remove or impute such values")),
    "infinity": (lambda: fit(SETS, np.where(X[9, 0] == X, np.inf, X)), error("X: row 9 holds infinity (inf) in column 0")),
    "NaN with labels": (lambda: fit(rows=np.where(X[9, 0] == X, np.nan, X)), error("X: row 9 holds NaN in column 0")),
    "text": (lambda: fit(SETS, FRAME.assign(c="red")), error("X: row 0 holds text ('red') in column 'c'; encode it in a pipeline")),
    "dates": (lambda: fit(SETS, FRAME.assign(d=pd.Timestamp("2024-01-01"))), error("X: row 0 holds a date (2024-01-01) in column 'd'; convert it to a number")),
    "objects": (lambda: sizes(OTHER.astype(object), X.astype(object)), right(SIZES)),
    "lists": (lambda: sizes(OTHER.tolist(), X.tolist()), right(SIZES)),
    "a sparse matrix": (lambda: sizes(scipy.sparse.csr_matrix(OTHER), scipy.sparse.csr_matrix(X), LogisticRegression()), right(LINEAR)),
    "a sparse matrix that is not taken": (lambda: fit(rows=scipy.sparse.csr_matrix(X)), error("Sparse data was passed for X, but dense data is required")),
    "polars": (lambda: sizes(pl.DataFrame(OTHER), pl.DataFrame(X), LogisticRegression()), right(LINEAR)),
    "pandas' own numbers": (lambda: sizes(pd.DataFrame(OTHER).astype("Float64"), pd.DataFrame(X).astype("Float64")), right(SIZES)),
    "pandas' own NA": (lambda: fit(SETS, FRAME.astype("Float64").mask(FRAME > 4.5)), error("X: row 20 holds NaN in column 'z'")),
    "masked values": (lambda: fit(rows=MASKED), error("X: row 16 holds a masked value; fill it, or remove such rows")),
    "masked values of new rows": (lambda: MODEL.predict_set(MASKED), error("X: row 16 holds a masked value")),
    "a path": (lambda: fit(rows="features.csv"), error("X: 'features.csv' is a path; pass its features, read with setwise.tables.read_table")),
    "no rows": (lambda: fit(NAMED[:0], X[:0]), error("y: 0 class; prediction sets need at least two")),
    "one row": (lambda: fit(NAMED[:1], X[:1]), error("y: 1 class, 'wren'")),
    "no columns": (lambda: fit(rows=X[:, :0]), error("Found array with 0 feature(s)")),
    "rows of several levels": (lambda: classes(pd.Series(NAMED, INDEXED.index), INDEXED), right(THREE)),
    "row names twice": (lambda: classes(pd.Series(NAMED, [0] * N), FRAME.set_axis([0] * N)), right(THREE)),
    "rows in another order": (lambda: fit(pd.Series(NAMED), FRAME.sort_values("x")), error("y: its index holds the rows of X in another order: row 0 is 0 in y and 53 in X; use y.loc[X.index]")),
    "columns twice": (lambda: fit(rows=FRAME.set_axis(["x", "x", "z"], axis=1)), error("X: several columns are called 'x'; give each a name of its own")),
    "column names of two types": (lambda: fit(rows=FRAME.set_axis(["x", 1, "z"], axis=1)), error("Feature names are only supported if all input features have string names")),
    # new rows
    "a model without fit": (lambda: ConformalClassifier(GaussianNB()).predict_set(X), error("This ConformalClassifier instance is not fitted yet")),
    "too few features": (lambda: MODEL.predict_set(X[:, :2]), error("X has 2 features, but GaussianNB is expecting 3 features")),
    "one row as a vector": (lambda: MODEL.predict_set(X[0]), error("Expected 2D array, got 1D array instead")),
    "one new row": (lambda: [len(labels) for labels in MODEL.predict_set(X[:1]).to_lists()], right(SIZES[:1])),
    "no new row": (lambda: MODEL.predict_set(X[:0]), error("Found array with 0 sample(s)")),
    "renamed columns": (lambda: FRAMED.predict_set(FRAME.set_axis(["a", "b", "c"], axis=1)), error("The feature names should match those that were passed during fit")),
    "columns in another order": (lambda: FRAMED.predict_set(FRAME[["z", "y", "x"]]), error("Feature names must be in the same order as they were in fit")),
    "columns without names": (lambda: FRAMED.predict_set(X), warns("X does not have valid feature names")),
    "NaN in new rows": (lambda: MODEL.predict_set(np.where(X[3, 1] == X, np.nan, X)), error("X: row 3 holds NaN in column 1")),
    "words in new rows": (lambda: MODEL.predict_set(np.full((3, 3), "red")), error("X: row 0 holds text ('red') in column 0")),
    "the training rows": (lambda: MODEL.evaluate(OTHER, NAMED), warns("X: 60 rows (100%, the first is row 0) were learned from or calibrated on")),
    # levels, and names of other libraries
    **{f"level {level!r}": (lambda level=level: MODEL.predict_set(X, level), error(words)) for level, words in {0: OUTSIDE, 1: OUTSIDE, 1.5: OUTSIDE, -0.1: OUTSIDE, 90: "did you mean 0.9?", "90%": "confidence_level: expected a number, got '90%'", "0.9": "confidence_level: expected a number, got '0.9'", float("nan"): "confidence_level: expected a finite number, got nan"}.items()},
    "a list with a level of 90": (lambda: MODEL.predict_set(X, [0.9, 90]), error("did you mean 0.9?")),
    "levels in an array": (lambda: [sets.sizes.tolist() for sets in MODEL.predict_set(X, np.array([0.9]))], right([SIZES])),
    "level 0.1": (lambda: MODEL.predict_set(X, 0.1), warns("confidence_level: 0.1 asks for sets that miss the truth in most rows; use confidence_level=0.9")),
    "level 95 of a model": (lambda: fit(confidence_level=95), error("did you mean 0.95?")),
    "alpha of a model": (lambda: fit(alpha=0.1), error("alpha: not an argument here; use confidence_level=0.9")),
    "alpha of sets": (lambda: MODEL.predict_set(X, alpha=0.05), error("alpha: not an argument here; use confidence_level=0.95")),
    "alpha of a calibration": (lambda: COUNTED.predict_set(P, alpha=0.05), error("alpha: not an argument here; use confidence_level=0.95")),
    "alpha of a guarantee": (lambda: MODEL.guarantee(alpha=0.1), error("alpha: not an argument here; use confidence_level=0.9")),
    "alpha of a calibration to be": (lambda: conformalize(P, Y, alpha=0.1), error("alpha: not an argument here; use predict_set(…, confidence_level=1 - alpha)")),
    "y in place of candidates": (lambda: conformalize(P, y=Y), error("missing 1 required positional argument: 'candidates'")),
    "a method": (lambda: fit(method="lac"), error("method: not an argument here; use conformity_score")),
    "a test size": (lambda: fit(test_size=0.3), error("test_size: not an argument here; use calibration_size")),
    "an argument of MAPIE": (lambda: MODEL.predict_set(X, include_last_label=True), error("include_last_label: not an argument here")),
    "true labels of scikit-learn": (lambda: evaluate(SETS, y_true=TRUTH), error("y_true: not an argument here; use y")),
    "an argument of pandas": (lambda: read_table({"x": [1]}, sep=","), error("sep: not an argument here; use delimiter")),
    # estimators
    "a regressor": (lambda: fit(estimator=Ridge()), error("estimator: Ridge is a regressor; pass a classifier")),
    "clusters": (lambda: fit(estimator=KMeans(2)), error(f"estimator: KMeans {NO_PROBABILITIES}")),
    "no probabilities": (lambda: fit(estimator=RidgeClassifier()), error(f"estimator: RidgeClassifier {NO_PROBABILITIES}")),
    "no probabilities for candidates": (lambda: fit(SETS, estimator=LinearSVC()), error(f"estimator: LinearSVC {NO_PROBABILITIES}")),
    "a support vector machine": (lambda: fit(estimator=SVC()), error(f"estimator: SVC {NO_PROBABILITIES}")),
    "a class of estimators": (lambda: fit(estimator=GaussianNB), error("estimator: expected an object such as LogisticRegression(), got <class")),
    "a name": (lambda: fit(estimator="logistic"), error("estimator: expected an object such as LogisticRegression(), got 'logistic'")),
    "frozen before fit": (lambda: fit(estimator=FrozenEstimator(GaussianNB())), error("This GaussianNB instance is not fitted yet")),
    "frozen with fewer classes": (lambda: fit(estimator=FrozenEstimator(GaussianNB().fit(OTHER[Y < 2], NAMED[Y < 2]))).evaluate(OTHER, NAMED)["coverage"], right(1.0)),
    "frozen with more classes": (lambda: fit(NAMED[Y < 2], X[Y < 2], FrozenEstimator(GaussianNB().fit(OTHER, NAMED))), error("estimator: its 3 probability columns are not the 2 classes of y")),
    "frozen with codes": (lambda: fit(estimator=FrozenEstimator(GaussianNB().fit(OTHER, Y))), error("estimator: its 3 probability columns are not the 3 classes of y")),
    "frozen without names": (lambda: fit(estimator=FrozenEstimator(Nameless())), error("estimator: Nameless has no classes_ that say what its columns mean; use classes=…")),
    "frozen in another order": (lambda: fit(estimator=FrozenEstimator(Reversed())).predict_proba(X[:1]).tolist(), right([[0.1, 0.2, 0.7]])),
    "a class of one row": (lambda: classes(first("emu", TRUTH)), right(sorted(["emu", *NAMES]))),
    "calibration on 150 %": (lambda: fit(calibration_size=1.5), error("calibration_size: 1.5 of n_samples=60")),
    "calibration on '20%'": (lambda: fit(calibration_size="20%"), error("calibration_size: 20% of n_samples=60")),
    "an unknown strategy": (lambda: fit(strategy="maximum"), error("strategy: 'maximum' is not known; use one of auto")),
    "an unknown score": (lambda: fit(conformity_score="softmax"), error("conformity_score: 'softmax' is not known; use one of lac")),
    "one fold": (lambda: CrossConformalClassifier(GaussianNB(), cv=1).fit(X, NAMED), error("cv: 1 folds of 60 rows")),
    "folds in text": (lambda: CrossConformalClassifier(GaussianNB(), cv="5").fit(X, NAMED), error("cv: '5' folds of 60 rows")),
    # probabilities
    "a vector of probabilities": (lambda: conformalize(P[:, 0], Y), error("probabilities: expected shape (rows, classes), got (60,)")),
    "probabilities transposed": (lambda: conformalize(P.T, Y), error("probabilities: row 0 sums to 18.53, not to 1 (tolerance 0.01); its columns do: pass its transpose")),
    "probabilities halved": (lambda: conformalize(P / 2, Y), error("row 0 sums to 0.5, not to 1 (tolerance 0.01); divide each row by its sum")),
    "logits": (lambda: conformalize(3 * X, Y), error("these look like logits: pass their softmax")),
    "percentages": (lambda: conformalize(100 * P, Y), error("these look like percentages: divide them by 100")),
    "a negative probability": (lambda: conformalize(spoiled([1.1, -0.1, 0.0]), Y), error("probabilities: row 9 has entries from -0.1 to 1.1, outside [0, 1]")),
    "a missing probability": (lambda: conformalize(spoiled([np.nan] * 3), Y), error("probabilities: row 9 holds nan in column 0")),
    "probabilities in text": (lambda: conformalize(P.astype(str), Y), error("probabilities: expected numbers, got an array of <U32; convert it to float")),
    "probabilities in objects": (lambda: conformalize(P.astype(object), Y), error("probabilities: expected numbers, got an array of object")),
    "sparse probabilities": (lambda: conformalize(scipy.sparse.csr_matrix(P), Y), error("probabilities: expected numbers, got an array of object")),
    "masked probabilities": (lambda: conformalize(np.ma.masked_less(P, 0.01), Y), error("probabilities: a masked array with masked entries")),
    "complex probabilities": (lambda: conformalize(P + 0j, Y), error("probabilities: expected real numbers, got complex128")),
    "whole probabilities": (lambda: conformalize(np.eye(3, dtype=int)[Y], Y).predict_set(np.eye(3, dtype=int)).to_lists(), right([[0], [1], [2]])),
    "probabilities in half precision": (lambda: conformalize(P.astype(np.float16), Y).predict_set(P[:2].astype(np.float16)).to_lists(), right([[0], [1]])),
    "probabilities in lists": (lambda: conformalize(P.tolist(), Y).predict_set(P.tolist()) == COUNTED.predict_set(P), right(True)),
    "named columns in another order": (lambda: conformalize(pd.DataFrame(P, columns=NAMES)[THREE], NAMED, classes=NAMES).predict_set(P) == CALLED.predict_set(P), right(True)),
    "columns of polars": (lambda: CALLED.predict_set(pl.DataFrame(P, schema=NAMES)) == CALLED.predict_set(P), right(True)),
    "columns named otherwise": (lambda: conformalize(pd.DataFrame(P, columns=list("abc")), NAMED, classes=NAMES), error("probabilities: the columns are not named for the classes ('a' is not one); rename them")),
    "probabilities of one class": (lambda: conformalize(P[:, :1], Y), error("probabilities: 1 class; prediction sets need at least two columns")),
    "probabilities of a class less": (lambda: COUNTED.predict_set(P[:, :2] / P[:, :2].sum(1, keepdims=True)), error("probabilities: 2 columns, but there are 3 classes")),
    "probabilities of no row": (lambda: conformalize(P[:0], Y[:0]), error("probabilities: no rows; calibration needs at least one")),
    "probabilities of a row less": (lambda: conformalize(P[1:], Y), error("candidates: 60 rows for 59 rows of probabilities")),
    "names without order": (lambda: conformalize(P, NAMED), error("candidates: labels such as 'ant' do not say which probability column they mean; use classes=…")),
    "labels from 1 on": (lambda: conformalize(P, Y + 1), error("candidates: row 2: 3 is not among the 3 classes")),
    "the label −1": (lambda: conformalize(P, first(-1, Y)), error("candidates: row 0: -1 is not among the 3 classes")),
    "classes too few": (lambda: conformalize(P, NAMED, classes=NAMES[:2]), error("classes: 2 labels for 3 probability columns")),
    "a class twice": (lambda: conformalize(P, NAMED, classes=["owl", "owl", "ant"]), error("classes: the label 'owl' occurs twice")),
    "classes in a text": (lambda: conformalize(P, NAMED, classes="wren"), error("classes: expected the labels in order, such as ['cat', 'dog'], got 'wren'")),
    # verified labels, votes, and other facts
    "verified as an unknown label": (lambda: conformalize(P, SETS, verified=first("emu", CHECKED)), error("verified: row 0 holds 'emu', which is not among the classes")),
    "verified outside the candidates": (lambda: conformalize(P, SETS, "max", verified=first("ant", CHECKED)), warns("verified: the label of row 0 is 'ant', which is not among its candidates {'wren'}")),
    "verified outside the candidates of rows learned from": (lambda: fit(SETS, strategy="max", given={"verified": first("ant", CHECKED)}), warns("verified: the label of row 0 is 'ant', which is not among its candidates")),
    "verified nowhere": (lambda: conformalize(P, SETS, verified=[None] * N), warns("verified: no row has a label; leave it out")),
    "verified for fewer rows": (lambda: conformalize(P, SETS, verified=CHECKED[1:]), error("verified: 59 entries for 60 rows; use None for the others")),
    "verified as numbers of rows": (lambda: conformalize(P, SETS, verified=[1, 3, 5]), error("verified: 3 entries for 60 rows")),
    "verified as codes": (lambda: conformalize(P, SETS, verified=[one and NAMES.index(one) for one in CHECKED]), error("verified: row 1 holds 1, which is not among the classes")),
    "verified as floats": (lambda: int(conformalize(P, MASK, verified=np.where(np.arange(N) % 2, Y, np.nan)).evidence.verified.sum()), right(N // 2)),
    "verified as empty text": (lambda: conformalize(P, SETS, verified=[one or "" for one in CHECKED]), error("verified: row 0 holds '', which is not among the classes")),
    "verified as lists": (lambda: conformalize(P, SETS, verified=LISTS), error("not one label; use truth='all'")),
    "votes as text": (lambda: Votes.from_lists(["cat", "dog"]), error("from_lists: row 0 is 'cat', not a collection of labels")),
    "a row without votes": (lambda: fit(Votes.from_lists(first([]))), warns("votes: nobody answered 1 of 60 rows, which are left out")),
    "negative counts": (lambda: Votes.from_counts([[1, -1], [2, 3]]), error("counts: expected one row per example, of numbers that are 0 or more")),
    "counts with NaN": (lambda: Votes.from_counts([[1, np.nan], [2, 3]]), error("counts: expected one row per example, of numbers that are 0 or more")),
    "copied lines of votes": (lambda: Votes.from_table({"item": [1, 1, 2, 1], "annotator": ["x", "x", "x", "y"], "label": ["a", "a", "a", "a"]}), warns("annotator 'x' gives 2 labels to item 1. In 1 of 2 rows several answers of one annotator count as one; delete copies")),
    "votes without a column": (lambda: Votes.from_table({"item": [1], "label": ["a"]}), error("annotator: the table has no column of this name; it has 'item', 'label'")),
    "categories of fewer rows": (lambda: conformalize(P, Y, by=["a"] * 3), error("by: 3 entries for 60 rows; give one per row")),
    "a row without category": (lambda: conformalize(P, Y, by=[None, *["a"] * 59]), error("by: row 0 has none; give it one")),
    "negative weights": (lambda: conformalize(P, Y, sample_weight=-np.ones(N)), error("sample_weight: row 0 has -1.0; these are positive and finite")),
    "an unknown assumption": (lambda: conformalize(P, SETS, "corrected", assume="unifrom"), error("assume: 'unifrom' is not known; use 'nothing'")),
    # evaluation, files
    "text for numbers": (lambda: evaluate(LabelSets.from_lists([[0, 1], [1]]), ["0", "1"]), warns("some true labels are in no set at all, and count as missed (2 of them); the first is '0' (row 0); write labels as the sets do (0)")),
    "labels for sets": (lambda: evaluate(NAMED, NAMED), error("sets: expected LabelSets or a mask, one row per example")),
    "truth of fewer rows": (lambda: evaluate(SETS, NAMED[1:]), error("y: 59 labels for 60 sets; give one per row")),
    "truth of no row": (lambda: evaluate(SETS, [None] * N), error("y: no row has a true label; use candidates=…")),
    "nothing to evaluate against": (lambda: evaluate(SETS), error("evaluate: give y (true labels) or candidates (candidate sets)")),
    "a model that is not there": (lambda: ConformalClassifier.load("nowhere"), error("nowhere: there is no such model directory")),
    "a model that is a file": (lambda: ConformalClassifier.load(__file__), error("test_bad_inputs.py: not a model directory; it has no setwise.json")),
    "a calibration that is not there": (lambda: Calibration.load("nowhere.cal"), error("No such file or directory: 'nowhere.cal'")),
    "a calibration that is something else": (lambda: Calibration.load(__file__), error("test_bad_inputs.py: not a setwise-calibration file")),
    "a table that is a number": (lambda: read_table(3), error("the table: int cannot be read as a table")),
    "a table that is an array": (lambda: read_table(X), error("the table: ndarray cannot be read as a table")),
    "a table that is not there": (lambda: read_table("no.csv"), error("no.csv: there is no such file")),
    "a table of uneven columns": (lambda: read_table({"x": [1], "y": [1, 2]}), error("the table: dict cannot be read as a table (Column 1 named y expected length 1 but got length 2)")),
    "a negative budget": (lambda: FRAMED.suggest(FRAME, SETS, -1), error("budget: -1 of 60 rows")),
    "an error of 5": (lambda: COUNTED.triage(P, max_error=5), error("max_error: 5 is not between 0 and 1 (exclusive); did you mean 0.05?")),
}  # fmt: skip


# -------------------------------------------------------------------- what must happen


def test_the_table_is_long():
    assert len(READ) + len(COMMANDS) + len(CALLS) >= 150


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    return make(tmp_path_factory.mktemp("good"))


@pytest.fixture
def here(good, tmp_path, monkeypatch):
    """A folder of good files, which a row may replace."""
    shutil.copytree(good, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")


def write(files):
    for name, content in files.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())


def options_of(line):
    found = COMMAND
    for word in line.split():
        found = getattr(found, "commands", {}).get(word, found)
    return {option for one in found.params for option in one.opts}


def ran(line):
    """Status, output and the warnings or the error of a command, each of which is one line and names options that are there."""
    status, out, said = command(line)
    kinds = [one.partition(": ")[0] for one in said.splitlines()]
    assert status == (2 if "error" in kinds else 0), said
    assert set(kinds) <= {"warning", "error"}
    assert kinds.count("error") <= 1
    if "No such option" not in said:
        assert set(re.findall(r"(?:use|leave out) (--[a-z-]+)", said)) <= options_of(line), said
    return status, out, said


READERS = {
    "inspect": "inspect {} --candidates answers --json {}",
    "predict": "predict model {} --p-values --out - {}",
}


def shown(name, out):
    """What a command that reads a table found, whatever else its columns hold."""
    if name == "inspect":
        return json.loads(out)
    table = pd.read_csv(io.StringIO(out))
    return table[[one for one in table.columns if one == "size" or one.startswith("p:")]].to_dict("list")


@pytest.fixture(scope="module")
def plain(good):
    with contextlib.chdir(good):
        return {name: shown(name, ran(line.format("plain.csv", ""))[1]) for name, line in READERS.items()}


@pytest.mark.parametrize("row", READ)
def test_a_file_is_read_right_or_with_a_word_that_names_the_cause(here, plain, row):
    file, content, options, outcome = READ[row]
    write({file: content})
    said = []
    for name, line in READERS.items():
        status, out, words = ran(line.format(file, options))
        said.append(words)
        if not words or (outcome.kind == "warns" and name == "predict"):  # doubts are about labels alone
            assert shown(name, out) == plain[name]
        elif outcome.kind == "error":
            assert status == 2
    if outcome.kind == "right":
        assert said == ["", ""]
    else:
        assert any(outcome.value in words for words in said), said
        assert ("error: " in "".join(said)) == (outcome.kind == "error")


@pytest.mark.parametrize("row", COMMANDS)
def test_a_command_is_right_or_says_what_is_wrong(here, row):
    files, line, outcome = COMMANDS[row]
    write(files)
    status, out, said = ran(f"{line} --json" if outcome.kind == "right" and "--json" not in line else line)
    assert (status == 2) == (outcome.kind == "error"), said
    if outcome.kind == "right":
        assert said == ""
        found = json.loads(out)
        assert {name: found[name] for name in outcome.value} == outcome.value
    else:
        assert outcome.value in said


@pytest.mark.parametrize("row", CALLS)
def test_a_call_is_right_or_says_what_is_wrong(row):
    call, outcome = CALLS[row]
    if outcome.kind == "error":
        with pytest.raises((ValueError, TypeError, OSError)) as raised:
            call()
        assert outcome.value in str(raised.value)
        return
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = call()
    words = [str(one.message) for one in said if not issubclass(one.category, RuntimeWarning)]
    if outcome.kind == "right":
        assert (found, words) == (outcome.value, [])
    else:
        assert any(outcome.value in one for one in words), words


def test_an_output_that_cannot_be_written_is_named(here, monkeypatch):
    opened = os.open

    def refused(path, *rest, **named):
        if str(path).endswith(".setwise.tmp"):
            raise PermissionError(13, "Permission denied")
        return opened(path, *rest, **named)

    monkeypatch.setattr(os, "open", refused)
    said = ran("predict model rows.csv --out s.csv")[2]
    assert re.fullmatch(r"error: \S*s\.csv: cannot be written: Permission denied\.\n", said)


def test_whoever_reads_a_part_of_the_output_sees_no_error(here):
    line = [sys.executable, "-m", "setwise", "predict", "model", "rows.csv", "--out", "-"]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as setwise:
        setwise.stdout.close()  # as head does when it has enough
        assert setwise.stderr.read() == b""
