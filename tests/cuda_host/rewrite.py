#!/usr/bin/env python3
"""Makes C++ of a CUDA source: kernel<<<shape>>>(arguments) becomes a call, and
shared memory belongs to the thread of the host that runs the block. Lines stay
where they are.

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
        r'static thread_local \1\2\3; static thread_local uint64_t '
        r'oj_host_\2; oj_host::poison_shared(\2, oj_host_\2);', text)


def main(source, output):
    with open(source, encoding='utf-8') as file:
        text = rewrite(file.read())
    for left in ('<<<', '__shared__', '__constant__', '__managed__'):
        if left in text:
            sys.exit(f'{source}: {left} was not understood')
    with open(output, 'w', encoding='utf-8') as file:
        file.write(f'#line 1 "{source}"\n{text}')


main(*sys.argv[1:])
