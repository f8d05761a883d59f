#!/usr/bin/env python3
"""Writes oj_fold_table.c: python3 make_fold_table.py > oj_fold_table.c

Defines the folding of code points by rules on the Unicode database of the Python
that runs it. Answers of joins depend on the table, so it is made once and kept.
"""
import re
import sys
import unicodedata

PLAIN = {'ø': 'o', 'đ': 'd', 'ł': 'l', 'ħ': 'h', 'ŧ': 't', 'æ': 'ae',
         'œ': 'oe', 'ı': 'i', 'ð': 'd', 'þ': 'th', 'ŋ': 'n'}
APOSTROPHES = set("'\u2019\u2018\u201b\u02bc\u02bb\u02bd`\u00b4\u2032")
END = 0x31400  # oj_fold.c handles code points from here on


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


def checksum_of(fold):
    """Returns the FNV-1a hash of the folded texts of all code points, each ended by a zero."""
    checksum = 0xcbf29ce484222325
    for cp in range(sys.maxunicode + 1):
        is_valid = not 0xd800 <= cp < 0xe000  # surrogates are not valid UTF-8
        for d in [ord(d) for d in fold(chr(cp))] + [0] if is_valid else []:
            checksum = (checksum ^ d) * 0x100000001b3 % 2**64
    return checksum


def count_covered_code_points(texts, first, step, rise):
    """Returns how many code points, from `first` on, one item can cover. The text of every step-th
    code point must be `rise` code points above the text before; the code points in between must
    fold to themselves."""
    cp, text = first, texts[first]
    while cp < END and texts[cp] == text and (
            step == 1 or texts[cp + 1] == chr(cp + 1)):
        cp += step
        text = chr(ord(text) + rise) if rise else text
    return cp - first


def items_of(texts):
    """Yields the items of a list: text, mark, number (oj_fold_table.h)."""
    cp, stay = 0, 0
    while cp < END:
        text = texts[cp]
        if text == chr(cp):
            stay += 1
            cp += 1
            continue
        if stay > 0:
            yield '', '=', stay
        stay = 0
        ways = [(count_covered_code_points(texts, cp, 1, 0), '*')]
        if len(text) == 1:
            ways += [(count_covered_code_points(texts, cp, 1, 1), '+'),
                     (count_covered_code_points(texts, cp, 2, 2), '/')]
        n, kind = max(ways, key=lambda way: way[0])
        yield text, kind, n
        cp += n


def c_literal_of(text):
    """Returns text for a C string literal: combining marks, and letters of scripts that are written
    from right to left, as \\u escapes."""
    return ''.join(
        c if c.isascii() or (unicodedata.category(c)[0] in 'LN' and
                             unicodedata.bidirectional(c) == 'L')
        else f'\\u{ord(c):04x}' if ord(c) < 0x10000 else f'\\U{ord(c):08x}'
        for c in text)


def print_c_table(name, texts):
    print(f'const char *const oj_fold_{name}[] = {{')
    line, size = '', 1
    for text, kind, n in items_of(texts):
        size += n // (2 if kind == '/' else 1) * 2 if kind in '+/' else (
            0 if kind == '=' else 1 + len(text))
        item = c_literal_of(text) + (kind + str(n) if n > 1 or kind == '=' else '')
        if len(line) + len(item) + 1 > 76:
            print(f'"{line}",')
            line = ''
        line += item + ';'
    print(f'"{line}", NULL}};')
    assert size <= 16384, "OJ_FOLD_POOL"


def main():
    folds = {'full': full, 'case': case}
    print('/* Made by make_fold_table.py of version ' +
          unicodedata.unidata_version + ' of the Unicode database. */\n'
          '/* clang-format off */\n#include "oj_fold_table.h"\n\n'
          '#include <stddef.h>\n')
    print(f'const char oj_fold_version[] = "{unicodedata.unidata_version}";')
    print('const uint64_t oj_fold_checksum[2] = {')
    print(','.join(f'{checksum_of(fold)}u' for fold in folds.values()) + '};')
    for name, fold in folds.items():
        print_c_table(name, [fold(chr(cp)) for cp in range(END)] + [''])


main()
