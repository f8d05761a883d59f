#!/usr/bin/env python3
"""Turns a CUDA source into C++: kernel<<<shape>>>(arguments) becomes a function call,
and a __shared__ variable becomes a reference to memory of the block. Line numbers are
kept.

    rewrite.py SOURCE OUTPUT
"""
import re
import sys


def rewrite(text):
    text = re.sub(r'\b(\w+)(\s*<[^<>;()]*>)?(\s*)<<<',
                  r'oj_host::launch("\1", \1\2,\3', text)
    text = text.replace('>>>', ')')
    return re.sub(
        r'__shared__\s+([^;\[\]]*?)(\w+)((?:\[[^\]]*\])*);',
        r'using oj_host_\2 = \1\3; static const size_t oj_place_\2 = '
        r'oj_host::shared_place(sizeof(oj_host_\2)); oj_host_\2 &\2 = '
        r'oj_host::shared_memory<oj_host_\2>(oj_place_\2);', text)


def main(source, output):
    with open(source, encoding='utf-8') as file:
        text = rewrite(file.read())
    for left in ('<<<', '__shared__', '__constant__', '__managed__'):
        if left in text:
            sys.exit(f'{source}: {left} was not understood')
    with open(output, 'w', encoding='utf-8') as file:
        file.write(f'#line 1 "{source}"\n{text}')


main(*sys.argv[1:])
