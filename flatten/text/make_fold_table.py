#!/usr/bin/env python3
"""Writes oj_fold_table.c: python3 make_fold_table.py > oj_fold_table.c

What a code point becomes is defined here, by the Unicode database of the Python
that runs this.  Answers of joins hang on it, so the table is made once and kept.
"""
import re
import sys
import unicodedata

PLAIN = {'ø': 'o', 'đ': 'd', 'ł': 'l', 'ħ': 'h', 'ŧ': 't', 'æ': 'ae',
         'œ': 'oe', 'ı': 'i', 'ð': 'd', 'þ': 'th', 'ŋ': 'n'}
APOSTROPHES = set("'\u2019\u2018\u201b\u02bc\u02bb\u02bd`\u00b4\u2032")
BLOCK = 128
END = 0x31400  # oj_fold.c knows what is behind it


def full(c):
    if c in APOSTROPHES:
        return ''
    if 0xAC00 <= ord(c) <= 0xD7A3:  # Hangul
        return c
    if unicodedata.category(c) in ('Cn', 'Cs', 'Co'):
        return ' '
    folded = unicodedata.normalize('NFKD', c).casefold()
    out = ''
    for d in unicodedata.normalize('NFKD', folded):
        category = unicodedata.category(d)
        if category == 'Mn' or d in APOSTROPHES:
            continue
        letter = category[0] in 'LN' or category in ('Mc', 'Me')
        out += PLAIN.get(d, d) if letter else ' '
    return re.sub(' +', ' ', out)


def case(c):
    return ' ' if c.isspace() else c.casefold()


def table_of(fold, pool, place_of, blocks):
    """The block of each 128 code points; and the checksum of all that code
    points become, each text ended by a zero."""
    numbers, checksum = [], 0xcbf29ce484222325
    for first in range(0, sys.maxunicode + 1, BLOCK):
        block = []
        for cp in range(first, first + BLOCK):
            text = fold(chr(cp))
            is_valid = not 0xd800 <= cp < 0xe000  # UTF-8 has no others
            for d in [ord(d) for d in text] + [0] if is_valid else []:
                checksum = (checksum ^ d) * 0x100000001b3 % 2**64
            if text not in place_of and text != chr(cp):
                place_of[text] = len(pool)
                pool += [len(text)] + [ord(d) for d in text]
            block.append(0 if text == chr(cp) else place_of[text])
        if first < END:
            numbers.append(blocks.setdefault(tuple(block), len(blocks)))
    return numbers, checksum


def put(kind, name, size, values):
    print(f'const {kind} {name}[{size}] = {{')
    line = ''
    for value in map(str, values):
        if len(line) + len(value) + 1 > 80:
            print(line)
            line = ''
        line += value + ','
    print(line + '};')


def main():
    pool, place_of, blocks = [0], {}, {tuple([0] * BLOCK): 0}
    tables = [table_of(fold, pool, place_of, blocks) for fold in (full, case)]
    version = unicodedata.unidata_version
    print('/* Made by make_fold_table.py of version ' + version +
          ' of the Unicode database. */\n/* clang-format off */\n'
          '#include "oj_fold_table.h"\n')
    print(f'const char oj_fold_version[] = "{version}";')
    put('uint64_t', 'oj_fold_checksum', 2, [f'{t[1]}u' for t in tables])
    for name, (numbers, _) in zip(('full', 'case'), tables):
        put('uint16_t', f'oj_fold_{name}', 'OJ_FOLD_BLOCKS', numbers)
    put('uint16_t', 'oj_fold_block', '', [v for block in blocks for v in block])
    put('uint32_t', 'oj_fold_pool', '', pool)


main()
