/** What GEOS answers when it is asked about two features. Knows no GEOS. */
#ifndef GEOS_VERDICT_H
#define GEOS_VERDICT_H

enum oj_geos_verdict
{
    OJ_GEOS_NO = 0,
    OJ_GEOS_YES = 1,    /**< also: there is an answer, which lies elsewhere */
    OJ_GEOS_CANNOT_SAY, /**< it raised: an invalid geometry, or a collection
                             that its relate does not take */
    OJ_GEOS_OUT_OF_MEMORY
};

#endif
