# bash completion for ogrjoin, which knows the words that can follow the one
# before, and whether a file can.

_ogrjoin()
{
    local IFS=$'\n' cur=${COMP_WORDS[COMP_CWORD]}
    local prev=${COMP_WORDS[COMP_CWORD - 1]} words has_file=1
    words=$(ogrjoin --complete "$prev" 2>/dev/null) || has_file=0
    if [[ ${prev,,} == -f || ${prev,,} == -of ]]; then
        words=$(ogrjoin --formats 2>/dev/null |
            sed -n 's/^  \(.*\) -.*vector.*(rw.*/\1/p')
    elif [[ $cur != -* ]]; then
        words=$(grep -v '^-' <<<"$words")
    fi
    if [[ $cur == --* ]]; then # two dashes are accepted, too
        words+=$'\n'$(sed -n 's/^-\([^-]\)/--\1/p' <<<"$words")
    fi
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
    if [[ $has_file == 1 && $cur != -* ]]; then
        COMPREPLY+=($(compgen -f -- "$cur"))
    fi
}

complete -o filenames -F _ogrjoin ogrjoin
