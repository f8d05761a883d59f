#include "oj_spec_file.h"

#include "../../flatten/base/oj_array.h"
#include "../files/oj_text_file.h"

#include <cpl_error.h>
#include <cpl_json.h>
#include <cpl_vsi.h>

#include <cstring>
#include <new>
#include <string>

namespace
{

constexpr int MAX_BYTES = 16 * 1024 * 1024;
const char byte_order_mark[] = "\xEF\xBB\xBF";
const char relative[] = "relative_paths_relative_to_this_file";

bool IsText(const CPLJSONObject &value)
{
    return value.IsValid() && value.GetType() == CPLJSONObject::Type::String;
}

/* The words of the file, in members. */
oj_status ReadMembers(const CPLJSONObject &root, const char *path,
                      oj_spec_file *spec, oj_error *err)
{
    if (root.GetType() != CPLJSONObject::Type::Object)
        return oj_fail(err, OJ_ERR_DATA,
                       "%s: it is not a JSON object that begins with {", path);
    const CPLJSONObject type = root.GetObj("type");
    const CPLJSONObject line = root.GetObj("command_line");
    const CPLJSONObject is_relative = root.GetObj(relative);
    if (!IsText(type) || type.ToString() != "ogrjoin")
        return oj_fail(err, OJ_ERR_DATA,
                       "%s has no member \"type\": \"ogrjoin\"", path);
    if (!IsText(line))
        return oj_fail(err, OJ_ERR_DATA,
                       "%s has no member \"command_line\": \"...\"", path);
    if (is_relative.IsValid() &&
        is_relative.GetType() != CPLJSONObject::Type::Boolean)
        return oj_fail(err, OJ_ERR_DATA, "%s: %s must be true or false", path,
                       relative);
    const std::string words = line.ToString();
    char *copy = static_cast<char *>(
        oj_malloc(static_cast<int64_t>(words.size()) + 1, 1));
    if (copy == nullptr)
        return oj_fail_nomem(err, static_cast<int64_t>(words.size()) + 1, 1);
    memcpy(copy, words.c_str(), words.size() + 1);
    spec->command_line = copy;
    spec->is_relative = !is_relative.IsValid() || is_relative.ToBool();
    return OJ_OK;
}

} // namespace

oj_status oj_spec_file_parse(const char *text, const char *path,
                             struct oj_spec_file *spec, struct oj_error *err)
{
    if (strncmp(text, byte_order_mark, strlen(byte_order_mark)) == 0)
        text += strlen(byte_order_mark);
    try
    {
        CPLJSONDocument document;
        CPLErrorReset();
        CPLPushErrorHandler(CPLQuietErrorHandler);
        const bool is_read =
            document.LoadMemory(reinterpret_cast<const GByte *>(text),
                                static_cast<int>(strlen(text)));
        CPLPopErrorHandler();
        if (!is_read)
            return oj_fail(err, OJ_ERR_DATA, "%s: %s", path,
                           CPLGetLastErrorMsg());
        return ReadMembers(document.GetRoot(), path, spec, err);
    }
    catch (const std::bad_alloc &)
    {
        return oj_fail_nomem(err, static_cast<int64_t>(strlen(text)), 1);
    }
}

oj_status oj_spec_file_read(const char *path, struct oj_spec_file *spec,
                            struct oj_error *err)
{
    GByte *bytes = nullptr;
    vsi_l_offset n = 0;
    oj_status status;
    CPLPushErrorHandler(CPLQuietErrorHandler);
    const int has_read = VSIIngestFile(nullptr, path, &bytes, &n, MAX_BYTES);
    CPLPopErrorHandler();
    if (!has_read)
        return oj_fail(err, OJ_ERR_IO,
                       "%s cannot be read, or is larger than %d bytes", path,
                       MAX_BYTES);
    const char *text = reinterpret_cast<const char *>(bytes);
    if (strlen(text) != n)
        status = oj_fail(err, OJ_ERR_DATA,
                         "%s is no text: it has a byte that is 0", path);
    else if (n == 0)
        status = oj_fail(err, OJ_ERR_DATA, "%s is empty", path);
    else
        status = oj_spec_file_parse(text, path, spec, err);
    VSIFree(bytes);
    return status;
}

void oj_spec_file_print(FILE *file, const void *spec)
{
    const oj_spec_file *s = static_cast<const oj_spec_file *>(spec);
    fprintf(file, "{\n  \"type\": \"ogrjoin\",\n  \"command_line\": ");
    oj_text_file_put_json(file, s->command_line);
    fprintf(file, ",\n  \"%s\": %s\n}\n", relative,
            s->is_relative ? "true" : "false");
}

void oj_spec_file_free(struct oj_spec_file *spec)
{
    oj_free(spec->command_line);
    spec->command_line = nullptr;
}
