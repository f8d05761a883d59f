# bash completion for ogrjoin. A test holds it against the table of options.

_ogrjoin()
{
    local cur=${COMP_WORDS[COMP_CWORD]}
    local prev=${COMP_WORDS[COMP_CWORD - 1]}
    local options="-op -relate -window -max_distance -max_distance_field
        -join_max_distance_field -min_distance -metric -k -ties -distance_to
        -on -exclude -unordered_pairs -centroid_of -point_on_surface_of -invalid
        -how -pick -agg -unmatched_layer -unmatched_join_layer -prefix
        -name_fid -name_distance -name_rank -name_count -overlap
        -nearest_point_fields -bearing_field -geometry
        -input_layer -where -sql -dialect -spat -select -limit -oo
        -join_layer -join_where -join_sql -join_dialect -join_select -joo
        -crs -s_srs -join_srs -t_srs -a_srs
        -f -of -nln -dsco -lco -doo -nlt -overwrite -append -update -unsetFid
        -write_spec
        -in_place -in_place_unsafe
        -threads -backend -gpu -gpu_memory -gpu_batch -batch -quadrant_size
        -memory -max_pairs -explain
        -validate -validate_report
        -benchmark -benchmark_csv -benchmark_seconds
        -q -quiet -progress -json_summary -h -help
        --help --version --devices --formats --format --config --debug --optfile"
    local backends="cpu cuda quadrant cuda_quadrant geos geos_sorted spatialindex
        spatialindex_collective sphere"
    local words=

    COMPREPLY=()
    case ${prev,,} in
        -op)
            words="nearest dwithin intersects within contains covers coveredby
                contains_properly touches crosses overlaps equals disjoint
                relate bbox window"
            ;;
        -metric) words="planar sphere" ;;
        -exclude) words="self same_geometry field=" ;;
        -centroid_of | -point_on_surface_of) words="input join both" ;;
        -invalid) words="use skip fix fail" ;;
        -pick)
            words="first nearest largest_overlap smallest_area largest_area
                max: min:"
            ;;
        -overlap) words="area length percent" ;;
        -geometry)
            words="input join nearest_point connection intersection"
            ;;
        -ties) words="first all" ;;
        -distance_to) words="interior boundary" ;;
        -how) words="left inner semi anti right full" ;;
        -crs) words="auto strict ignore" ;;
        -nlt) words="PROMOTE_TO_MULTI NONE" ;;
        -threads) words="ALL_CPUS" ;;
        -write_spec)
            COMPREPLY=($(compgen -f -X '!*.ogrjoin' -- "$cur"))
            return
            ;;
        -backend) words="auto $backends" ;;
        -gpu) words="all 0" ;;
        -validate)
            if [[ $cur != -* ]]; then
                words="$backends"
            fi
            ;;
        -f | -of)
            local IFS=$'\n'
            COMPREPLY=($(compgen -W "$(ogrjoin --formats 2>/dev/null |
                sed -n 's/^  \(.*\) -.*vector.*(rw.*/\1/p')" -- "$cur"))
            return
            ;;
        -relate | -window | -max_distance | -max_distance_field | \
            -join_max_distance_field | -min_distance | -on | -agg | \
            -unmatched_layer | -unmatched_join_layer | -name_fid | \
            -name_distance | -name_rank | -name_count | -memory | \
            -max_pairs | -k | -prefix | -input_layer | -sql | -dialect | \
            -where | -spat | -select | -limit | -oo | -join_layer | -joo | \
            -join_where | -join_sql | -join_dialect | -join_select | \
            -s_srs | -join_srs | -t_srs | -a_srs | -nln | -dsco | -lco | \
            -doo | -batch | -quadrant_size | -benchmark_seconds)
            return
            ;;
    esac
    if [[ $cur == -* ]]; then
        words="$options"
    fi
    if [[ -n $words ]]; then
        COMPREPLY=($(compgen -W "$words" -- "$cur"))
    fi
    if [[ $cur != -* && (-z $words || $prev == -validate) ]]; then
        COMPREPLY+=($(compgen -f -- "$cur"))
    fi
}

complete -o filenames -F _ogrjoin ogrjoin
