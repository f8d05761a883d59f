#!/usr/bin/env bash
# Every join by example, on a small sample city: prints the question, the
# command, and its summary line.
#
#   samples/joins.sh [FOLDER]        default: out/joins
#
# ogrjoin and make_city are taken from the PATH, or from build/demo, where
# samples/demo.sh builds them.
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
PATH=$PATH:$top/build/demo:$top/build/demo/samples
folder=${1:-$top/out/joins}
mkdir -p "$folder"
cd "$folder"

# The question, then the command, as one would type it.
ask() {
    local word
    printf '\n# %s\n$' "$1"
    shift
    for word in "$@"; do
        case $word in
        *[\ \'\;\*\(\)]*) printf ' "%s"' "$word" ;;
        *) printf ' %s' "$word" ;;
        esac
    done
    printf '\n'
    "$@"
}
# The outputs of an earlier run are replaced.
join() { ask "$1" ogrjoin -overwrite "${@:2}"; }

{ command -v ogrjoin && command -v make_city; } >/dev/null ||
    { echo "build first: samples/demo.sh"; exit 1; }
make_city -avenues 8 -streets 14 -pickups 20000 city
cd city

printf '\n== By place\n'
join "Which zone is each pickup in?" \
    pickup_zones.fgb pickups.fgb zones.fgb
join "The same, but not on the border" \
    -op within within.fgb pickups.fgb zones.fgb
join "Which pickups are in each zone? One row per pair" \
    -op contains -how inner contains.fgb zones.fgb pickups.fgb
join "Which lots lie in a zone from end to end?" \
    -op coveredby -how inner coveredby.fgb lots.fgb zones.fgb
join "And the same asked of the zones" \
    -op covers -how inner covers.fgb zones.fgb lots.fgb
join "Which lots lie in a zone without touching its border?" \
    -op contains_properly -how inner properly.fgb zones.fgb lots.fgb
join "Which lots are cut by the border of a zone?" \
    -op overlaps -how inner overlaps.fgb lots.fgb zones.fgb
join "Which lots are neighbours? Each pair once" \
    -op touches -how inner -unordered_pairs neighbours.fgb lots.fgb lots.fgb
join "Which streets lead from zone to zone?" \
    -op crosses -how inner crosses.fgb streets.fgb zones.fgb
join "Which zones does each pickup not lie in?" \
    -op disjoint -how inner disjoint.fgb pickups.fgb zones.fgb
join "Which lots share an edge, not only a corner, with another one?" \
    -relate 'F***1****' -how inner edges.fgb lots.fgb lots.fgb
join "Which envelopes of streets and zones meet?" \
    -op bbox -how inner bbox.fgb streets.fgb zones.fgb
join "Which pickups lie in this box?" \
    -window 988000 198000 990000 199000 window.fgb pickups.fgb
join "Which pickups lie in the envelope of a zone?" \
    -op window in_envelopes.fgb pickups.fgb zones.fgb
join "Which pickups are exactly where one of those in the box is?" \
    -op equals -how inner equals.fgb pickups.fgb window.fgb
join "Which zone is the middle of each lot in?" \
    -centroid_of input middles.fgb lots.fgb zones.fgb

printf '\n== By distance\n'
join "Which lot is nearest to each pickup, up to 100 feet away?" \
    -op nearest -max_distance 100ft nearest.fgb pickups.fgb lots.fgb
join "Which three streets are nearest to each lot?" \
    -op nearest -k 3 nearest3.fgb lots.fgb streets.fgb
join "Which lots are within 60 feet of each street?" \
    -op dwithin -max_distance 60ft -how inner near.fgb streets.fgb lots.fgb
join "Which lots of the same use are within 100 feet? Each pair once" \
    -op dwithin -max_distance 100ft -on use_code -unordered_pairs -how inner \
    alike.fgb lots.fgb lots.fgb
join "Which other lot is nearest to each lot, but does not touch it?" \
    -op nearest -min_distance 0.001 other.fgb lots.fgb lots.fgb
join "Which pickups are in reach of each station, each with its own reach?" \
    -op dwithin -max_distance_field reach:m -t_srs EPSG:2263 -how inner \
    reach.fgb stations.fgb pickups.fgb
join "The same asked of the pickups" \
    -op dwithin -join_max_distance_field reach:m -how inner \
    reached.fgb pickups.fgb stations.fgb
join "How many metres along the globe to the nearest pickup?" \
    -op nearest -metric sphere globe.fgb stations.fgb pickups.fgb

printf '\n== By text and by numbers\n'
join "Which shops of two maps have similar names and are near? One to one" \
    -op dwithin -max_distance 200m -similar name:0.5 -one_to_one -how inner \
    shops.fgb places_a.fgb places_b.fgb
join "Which five names are most like that of each shop, wherever they are?" \
    -op similar -similar name -k 5 -how inner names.fgb places_a.fgb places_b.fgb
join "Which five other pickups are most like each one in fare and hour?" \
    -op similar -vector fare:0.1+hour -k 5 -how inner \
    like.fgb pickups.fgb pickups.fgb
join "Which zone has the number that each lot names? Neither needs a geometry" \
    -op attributes -on use_code=zone_id -how inner numbers.csv lots.fgb zones.fgb

printf '\n== One row per feature\n'
join "In which zone does most of each lot lie?" \
    -pick largest_overlap -overlap area,percent most.fgb lots.fgb zones.fgb
join "What was the dearest pickup of each zone?" \
    -pick max:fare dearest.fgb zones.fgb pickups.fgb
join "How many pickups has each zone, and what did they pay?" \
    -agg 'count, sum(fare), mean(fare), median(fare), max(hour)' \
    totals.fgb zones.fgb pickups.fgb
join "Which land uses has each zone?" \
    -agg "count, unique(land_use), mode(land_use), concat(land_use, '; ')" \
    uses.fgb zones.fgb lots.fgb

printf '\n== Who is kept, and what is written\n'
join "Pickups with a lot, once each and as they are" \
    -op nearest -max_distance 20ft -how semi semi.fgb pickups.fgb lots.fgb
join "Pickups without a lot" \
    -op nearest -max_distance 20ft -how anti anti.fgb pickups.fgb lots.fgb
join "Both, and the lots without a pickup, in one table" \
    -op nearest -max_distance 20ft -how full full.gpkg pickups.fgb lots.fgb
join "Three layers in one pass: pairs, and what is left on either side" \
    -op nearest -max_distance 20ft -how inner -unmatched_layer no_lot \
    -unmatched_join_layer no_pickup three.gpkg pickups.fgb lots.fgb
join "A line from each pickup to its lot, and which way it leads" \
    -op nearest -max_distance 100ft -how inner -geometry connection \
    -nearest_point_fields -bearing_field lines.fgb pickups.fgb lots.fgb
join "How far along its street is each pickup, and on which side of it?" \
    -op nearest -how inner -along_field along -offset_field offset \
    -side_field side along.fgb pickups.fgb streets.fgb
join "How do lots and zones lie to each other?" \
    -op intersects -how inner -relation_field relation -matrix_field matrix \
    relations.fgb lots.fgb zones.fgb
join "Lots cut along the zones" \
    -how inner -geometry intersection -overlap area,percent \
    pieces.fgb lots.fgb zones.fgb
join "Other names for the columns, and the number of pairs" \
    -op dwithin -max_distance 60ft -name_fid lot -name_distance feet \
    -name_count lots named.csv pickups.fgb lots.fgb

printf '\n== How it runs\n'
ask "What would be done?" \
    ogrjoin -explain -op dwithin -max_distance 60ft out.fgb pickups.fgb lots.fgb
join "With so little memory that the join side comes in tiles from disk" \
    -op dwithin -max_distance 60ft -memory 100K tiles.fgb pickups.fgb lots.fgb
join "Not a cross product by accident" \
    -op dwithin -max_distance 60ft -max_pairs 1000000 \
    bounded.fgb pickups.fgb lots.fgb
join "Is the answer that of GEOS, pair by pair?" \
    -op dwithin -max_distance 60ft -validate proved.fgb pickups.fgb lots.fgb
