#include "oj_option_hint.h"

#include "../base/oj_spelling.h"
#include "oj_command.h"

#include <cpl_string.h>

#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char how[] = "write -how left, inner, semi, anti, right or full";
static const char reach[] = "write -max_distance D[unit]";
static const char two_dashes[] = "it has two dashes here";
static const char chosen_by[] = "-join_where or -join_sql chooses join rows";
static const char first_word[] =
    "the destination is the first word that is no option";

/* Words that say elsewhere what something else says here. */
static const struct
{
    const char *word, *instead;
} elsewhere[] = {
    {"predicate", "write -op NAME"},
    {"left", how},
    {"inner", how},
    {"outer", how},
    {"right", how},
    {"full", how},
    {"semi", how},
    {"anti", how},
    {"distance", reach},
    {"dist", reach},
    {"radius", reach},
    {"buffer", reach},
    {"makevalid", "write -invalid fix"},
    {"clipsrc", "-spat takes the rows that touch a box, -geometry intersection "
                "what two features have in common"},
    {"spat_srs", "the box of -spat is in the layer's own CRS"},
    {"geomfield", "-sql with a SELECT of that column chooses it"},
    {"fid", "write -where \"fid = N\", with the name of the FID column"},
    {"preserve_fid", "FIDs are kept where rows are one to one"},
    {"ds_transaction", "what is written is one transaction anyway"},
    {"skipfailures", "a row that cannot be written is an error"},
    {"join_spat", chosen_by},
    {"join_limit", chosen_by},
    {"layer", "write -input_layer NAME or -join_layer NAME"},
    {"group_by", "-agg makes one row per input row"},
    {"force", "write -overwrite"},
    {"o", first_word},
    {"out", first_word},
    {"output", first_word},
    {"verbose", "write --debug on"},
    {"debug", two_dashes},
    {"config", two_dashes},
    {"formats", two_dashes},
    {"format", "write -f DRIVER, or --format DRIVER to be told of one"},
    {"optfile", two_dashes},
    {"version", two_dashes},
    {"devices", two_dashes},
};

/* What ogr2ogr does to a layer, and so to a join that it reads. */
static const char *const of_ogr2ogr[] = {
    "addfields",
    "clipdst",
    "clipsrclayer",
    "clipsrcsql",
    "clipsrcwhere",
    "ct",
    "dateTimeTo",
    "dim",
    "emptyStrAsNull",
    "explodecollections",
    "fieldmap",
    "fieldTypeToString",
    "forceNullable",
    "gcp",
    "gt",
    "lang",
    "mapFieldType",
    "mo",
    "nomd",
    "noNativeData",
    "order",
    "relaxedFieldNameMatch",
    "resolveDomains",
    "s_coord_epoch",
    "segmentize",
    "simplify",
    "t_coord_epoch",
    "tps",
    "unsetDefault",
    "unsetFieldWidth",
    "upsert",
    "wrapdateline",
    "datelineoffset",
    "xyRes",
    "zfield",
    NULL,
};

/* Without the marks between words, which everyone sets in another way. */
static void bare(const char *name, size_t n, char *out, size_t size)
{
    size_t used = 0;
    for (size_t i = 0; i < n && used + 1 < size; i++)
    {
        if (name[i] != '_' && name[i] != '-')
            out[used++] = name[i];
    }
    out[used] = '\0';
}

/* The option that is called so but for at most most letters, or NULL. */
static const char *nearest_option(const char *name, size_t n, int most)
{
    const struct oj_option *option;
    const char *best = NULL;
    char word[64], here[64];
    int least = most + 1;
    bare(name, n, word, sizeof word);
    for (int i = 0; (option = oj_option_at(i)) != NULL; i++)
    {
        int distance;
        bare(option->name, strlen(option->name), here, sizeof here);
        distance = oj_spelling_distance(word, here);
        if (distance < least && distance < (int)strlen(word))
        {
            best = option->name;
            least = distance;
        }
    }
    return best;
}

static const char *find_elsewhere(const char *name)
{
    for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++)
    {
        if (strcasecmp(elsewhere[i].word, name) == 0)
            return elsewhere[i].instead;
    }
    return NULL;
}

void oj_option_hint(const char *word, char *text, size_t size)
{
    const char *name = word + 1 + (word[1] == '-');
    size_t n = strcspn(name, "=");
    const char *instead = find_elsewhere(name);
    /* More is another word, no typing error. */
    const char *nearest = nearest_option(name, n, name[n] == '=' ? 0 : 2);
    if (name[n] == '=' && nearest != NULL)
        snprintf(text, size, "; write -%s %.100s, with a space", nearest,
                 name + n + 1);
    else if (instead != NULL)
        snprintf(text, size, ": %s (ogrjoin --help lists all)", instead);
    else if (CSLFindString((CSLConstList)of_ogr2ogr, name) >= 0)
        snprintf(text, size,
                 ": it is one of ogr2ogr, which reads joins, too: ogr2ogr "
                 "-%s ... dst_ds 'JOIN:[options] input_ds join_ds'",
                 name);
    else if (nearest != NULL)
        snprintf(text, size, "; did you mean -%s? (ogrjoin --help lists all)",
                 nearest);
    else
        snprintf(text, size, "; ogrjoin --help lists all");
}
