/* Reads any bytes as a CRS, and as the metadata of a GeoArrow column. They are
 * refused with one line of error, or give a CRS that equals itself and has a
 * positive unit. With clang: -fsanitize=fuzzer,address,undefined. With
 * OJ_FUZZ_MAIN, fuzz_crs_text [ITERATIONS] mutates texts of all kinds, from a
 * fixed seed. */
#include "../../algs/api/rows/oj_crs_text.h"
#include "../../driver/base/oj_message.h"
#include "../../flatten/base/oj_alloc.h"
#include "fuzz_bytes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char other[] =
    "PROJCRS[\"y\",BASEGEOGCRS[\"z\",DATUM[\"d\",ELLIPSOID[\"e\",6378137,298]]"
    "],CONVERSION[\"c\",METHOD[\"m\"],PARAMETER[\"p\",1,ANGLEUNIT[\"degree\","
    "0.0174532925199433]]],CS[Cartesian,2],LENGTHUNIT[\"metre\",1]]";

static void check_error(struct oj_error *err)
{
    require(err->message[0] != '\0', "no reason is given");
    oj_message_make_one_line(err->message);
    for (const char *c = err->message; *c != '\0'; c++)
        require((unsigned char)*c >= 0x20, "an error of several lines");
}

static void check_crs(const struct oj_crs_text *crs)
{
    require(crs->kind <= OJ_CRS_KIND_LOCAL, "an unknown kind");
    require(isnan(crs->unit) || crs->unit > 0, "a unit that is not above 0");
    require(crs->name[0] != '\0', "a CRS without a name");
    require(!crs->is_wgs84 || crs->kind == OJ_CRS_KIND_GEOGRAPHIC,
            "WGS 84 that is not geographic");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct oj_error err = {OJ_OK, ""};
    struct oj_crs_text crs;
    enum oj_crs_equality equality;
    char *text = oj_malloc((int64_t)size + 1, 1), *of_metadata = NULL;
    require(text != NULL, "out of memory");
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    if (oj_crs_text_read(text, "it", NULL, &crs, &err) == OJ_OK)
    {
        check_crs(&crs);
        require(oj_crs_text_compare(text, text, NULL, &equality, &err) == OJ_OK,
                "it is read once, but not twice");
        require(equality == OJ_CRS_EQUAL, "it is not one with itself");
        require(oj_crs_text_compare(other, text, NULL, &equality, &err) ==
                    OJ_OK,
                "it cannot be compared");
    }
    else
        check_error(&err);
    if (oj_crs_text_of_metadata(text, &of_metadata, &err) != OJ_OK)
        check_error(&err);
    oj_free(of_metadata);
    oj_free(text);
    return 0;
}

#ifdef OJ_FUZZ_MAIN
enum
{
    MAX_BYTES = 4000
};

static const char *const texts[] = {
    "EPSG:2263",
    "urn:ogc:def:crs:OGC:1.3:CRS84",
    "https://www.opengis.net/def/crs/EPSG/0/4326",
    "EPSG:4326+5773",
    "\"EPSG:4326\"",
    "{\"crs\":\"OGC:CRS84\",\"edges\":\"spherical\"}",
    "GEOGCS[\"WGS 84\",DATUM[\"WGS_1984\",SPHEROID[\"WGS 84\",6378137,"
    "298.257223563]],PRIMEM[\"Greenwich\",0],UNIT[\"degree\","
    "0.0174532925199433],AUTHORITY[\"EPSG\",\"4326\"]]",
    "PROJCS[\"a \"\"b\"\"\",GEOGCS[\"c\",DATUM[\"D_d\",SPHEROID[\"e\","
    "6378137.0,298.2]],PRIMEM[\"Paris\",2.3],UNIT[\"Degree\",0.01745]],"
    "PROJECTION[\"p\"],PARAMETER[\"q\",-70.5],UNIT[\"Foot_US\",0.3048006],"
    "EXTENSION[\"PROJ4\",\"+proj=x\"]],VERTCS[\"v\",UNIT[\"m\",1]]",
    "COMPOUNDCRS[\"x\",BOUNDCRS[SOURCECRS[PROJCRS[\"y\",BASEGEOGCRS[\"z\","
    "ENSEMBLE[\"World Geodetic System 1984 ensemble\",ELLIPSOID[\"e\",6378137,"
    "298.257223563,LENGTHUNIT[\"metre\",1]]]],CONVERSION[\"c\",METHOD[\"m\"],"
    "PARAMETER[\"p\",1,ANGLEUNIT[\"degree\",0.0174532925199433]]],"
    "CS[Cartesian,2],AXIS[\"e\",east,ORDER[1],LENGTHUNIT[\"metre\",1]],"
    "USAGE[SCOPE[\"s\"],BBOX[-90,-180,90,180]],ID[\"EPSG\",32631]]]]]",
    "{\"type\":\"CompoundCRS\",\"name\":\"\\u00e9\\ud83d\\ude00\","
    "\"components\""
    ":[{\"type\":\"BoundCRS\",\"source_crs\":{\"type\":\"ProjectedCRS\","
    "\"base_crs\":{\"datum\":{\"name\":\"d\",\"ellipsoid\":{\"semi_major_axis\""
    ":{\"value\":6378,\"unit\":{\"type\":\"LinearUnit\",\"name\":\"km\","
    "\"conversion_factor\":1e3}},\"semi_minor_axis\":6356752}}},\"conversion\":"
    "{\"method\":{\"name\":\"m\"},\"parameters\":[{\"name\":\"p\",\"value\":1,"
    "\"unit\":\"degree\"}]},\"coordinate_system\":{\"subtype\":\"Cartesian\","
    "\"axis\":[{\"unit\":\"metre\"}]}}},{\"type\":\"VerticalCRS\"}],\"id\":{"
    "\"authority\":\"EPSG\",\"code\":7415}}"};

int main(int argc, char **argv)
{
    static const char letters[] = "\"[](){},:\\u+|019.-eEnul \n\x80\xFF\x01";
    long n_rounds = argc > 1 ? atol(argv[1]) : 200000;
    for (long i = 0; i < n_rounds; i++)
    {
        char text[MAX_BYTES + 1] = "";
        const char *from = texts[pick(sizeof texts / sizeof *texts)];
        size_t n = strlen(from);
        memcpy(text, from, n);
        for (int m = pick(6); m > 0; m--)
            n = mutate(text, n, MAX_BYTES - 1, letters, sizeof letters - 1);
        LLVMFuzzerTestOneInput((const uint8_t *)text, n);
    }
    printf("%ld inputs\n", n_rounds);
    return 0;
}
#endif
