/* "gdal vector join [options] INPUT JOIN OUTPUT" (GDAL 3.12 and later). It
 * accepts the options of a join dataset, which are taken from the option table,
 * and lets GDAL write its rows. With the format "stream" the result is the
 * dataset itself.
 */
#include "oj_gdal_vector_join.h"

#include "../base/oj_shell_words.h"
#include "../command/oj_option_table.h"

#include <cpl_conv.h>
#include <cpl_string.h>
#include <gdal_priv.h>
#include <gdal_utils.h>
#include <gdalalgorithm.h>
#include <ogrsf_frmts.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace
{

/* An option of the table and the values given for it. */
struct Given
{
    const oj_option *option;
    bool is_on = false; /* whether a flag is given */
    /* for each choice of OJ_OPTION_FLAG_OR_WORD: whether its flag is given */
    std::deque<bool> is_word_on{};
    std::string text{};               /* value of an option with one argument */
    std::vector<std::string> texts{}; /* values of a list */
    std::vector<double> numbers{};    /* coordinates of a box */

    explicit Given(const oj_option *of) : option(of)
    {
    }
    bool IsText() const
    {
        return option->kind != OJ_OPTION_FLAG &&
               option->kind != OJ_OPTION_FLAG_OR_WORD &&
               option->kind != OJ_OPTION_LIST && option->kind != OJ_OPTION_BOX;
    }
};

/* Returns true for options of a join dataset, except -window, and except -q and
 * -progress, which GDAL itself handles. */
bool IsJoinDatasetOption(const oj_option *option)
{
    return option->not_read == nullptr &&
           oj_words_find("q|progress|window", option->name) < 0;
}

std::string ArgumentOf(const oj_option *option)
{
    std::string name = option->name;
    std::replace(name.begin(), name.end(), '_', '-');
    return name;
}

/* Returns word k of an option's choices. */
std::string WordOf(const oj_option *option, int k)
{
    int n = 0;
    const char *word = oj_words_at(option->choices, k, &n);
    return std::string(word, static_cast<size_t>(n));
}

class VectorJoin final : public GDALAlgorithm
{
    GDALArgDatasetValue m_input{}, m_join{}, m_output{};
    std::string m_format{};
    std::vector<std::string> m_creation{}, m_layer_creation{};
    bool m_overwrite = false;
    /* a deque, because GDAL's arguments point to its elements */
    std::deque<Given> m_given{};

    void AddOption(const oj_option *option);
    std::vector<std::string> CommandWords() const;
    std::unique_ptr<GDALDataset> Open() const;
    bool Write(GDALDataset *join, GDALProgressFunc progress, void *user);
    bool RunImpl(GDALProgressFunc progress, void *user) override;

  public:
    static constexpr const char *NAME = "join";
    VectorJoin();
};

VectorJoin::VectorJoin()
    : GDALAlgorithm(NAME, "Join two vector layers (ogrjoin).", "ogrjoin(1)")
{
    m_supportsStreamedOutput = true;
    AddProgressArg();
    AddInputDatasetArg(&m_input, GDAL_OF_VECTOR);
    AddArg("join", 0, "Dataset that is joined with it", &m_join, GDAL_OF_VECTOR)
        .SetPositional()
        .SetRequired();
    AddOutputDatasetArg(&m_output, GDAL_OF_VECTOR);
    AddOutputFormatArg(&m_format, true, true);
    AddCreationOptionsArg(&m_creation);
    AddLayerCreationOptionsArg(&m_layer_creation);
    AddOverwriteArg(&m_overwrite);
    for (int i = 0; oj_option_at(i) != nullptr; i++)
    {
        if (IsJoinDatasetOption(oj_option_at(i)))
            AddOption(oj_option_at(i));
    }
}

void VectorJoin::AddOption(const oj_option *option)
{
    Given &given = m_given.emplace_back(option);
    const std::string name = ArgumentOf(option);
    switch (option->kind)
    {
        case OJ_OPTION_FLAG:
            AddArg(name, 0, option->help, &given.is_on);
            break;
        case OJ_OPTION_FLAG_OR_WORD: /* --one-to-one, --one-to-one-best */
            AddArg(name, 0, option->help, &given.is_on);
            for (int n, k = 0; oj_words_at(option->choices, k, &n); k++)
                AddArg(name + "-" + WordOf(option, k), 0, option->help,
                       &given.is_word_on.emplace_back(false));
            break;
        case OJ_OPTION_LIST:
            AddArg(name, 0, option->help, &given.texts)
                .SetMetaVar(option->arguments)
                .SetPackedValuesAllowed(false);
            break;
        case OJ_OPTION_BOX:
            AddArg(name, 0, option->help, &given.numbers)
                .SetMetaVar("XMIN,YMIN,XMAX,YMAX");
            break;
        default:
            AddArg(name, 0, option->help, &given.text)
                .SetMetaVar(option->arguments);
            break;
    }
}

std::vector<std::string> VectorJoin::CommandWords() const
{
    std::vector<std::string> words;
    for (const Given &given : m_given)
    {
        const std::string name = std::string("-") + given.option->name;
        if (given.is_on)
            words.push_back(name);
        for (size_t k = 0; k < given.is_word_on.size(); k++)
        {
            if (given.is_word_on[k])
            {
                words.push_back(name);
                words.push_back(WordOf(given.option, static_cast<int>(k)));
            }
        }
        for (const std::string &text : given.texts)
        {
            words.push_back(name);
            words.push_back(text);
        }
        if (!given.numbers.empty())
            words.push_back(name);
        for (double number : given.numbers)
            words.push_back(CPLSPrintf("%.17g", number));
        if (given.IsText() &&
            GetArg(ArgumentOf(given.option))->IsExplicitlySet())
        {
            words.push_back(name);
            words.push_back(given.text);
        }
    }
    words.push_back(m_input.GetName());
    words.push_back(m_join.GetName());
    return words;
}

std::unique_ptr<GDALDataset> VectorJoin::Open() const
{
    const std::vector<std::string> words = CommandWords();
    std::vector<const char *> list;
    for (const std::string &word : words)
        list.push_back(word.c_str());
    list.push_back(nullptr);
    char *line = oj_words_join(list.data());
    const std::string name = std::string("JOIN:") + line;
    CPLFree(line);
    const char *const drivers[] = {"JOIN", nullptr};
    return std::unique_ptr<GDALDataset>(GDALDataset::Open(
        name.c_str(), GDAL_OF_VECTOR | GDAL_OF_VERBOSE_ERROR, drivers));
}

bool VectorJoin::Write(GDALDataset *join, GDALProgressFunc progress, void *user)
{
    CPLStringList options;
    if (!m_format.empty())
        options.AddString("-f").AddString(m_format.c_str());
    for (const std::string &option : m_creation)
        options.AddString("-dsco").AddString(option.c_str());
    for (const std::string &option : m_layer_creation)
        options.AddString("-lco").AddString(option.c_str());
    if (m_overwrite)
        options.AddString("-overwrite");
    if (join->GetLayer(0)->GetFIDColumn()[0] != '\0')
        options.AddString("-preserve_fid");
    GDALVectorTranslateOptions *how =
        GDALVectorTranslateOptionsNew(options.List(), nullptr);
    if (how == nullptr)
        return false;
    GDALVectorTranslateOptionsSetProgress(how, progress, user);
    GDALDatasetH source = GDALDataset::ToHandle(join);
    std::unique_ptr<GDALDataset> written(
        GDALDataset::FromHandle(GDALVectorTranslate(
            m_output.GetName().c_str(), nullptr, 1, &source, how, nullptr)));
    GDALVectorTranslateOptionsFree(how);
    if (written == nullptr)
        return false;
    m_output.Set(std::move(written));
    return true;
}

bool VectorJoin::RunImpl(GDALProgressFunc progress, void *user)
{
    std::unique_ptr<GDALDataset> join = Open();
    if (join == nullptr)
        return false;
    if (m_format != "stream")
        return Write(join.get(), progress, user);
    m_output.Set(std::move(join));
    return true;
}

} // namespace

void oj_vector_algorithm_declare(void)
{
    GDALGlobalAlgorithmRegistry::GetSingleton().DeclareAlgorithm(
        {"vector", VectorJoin::NAME},
        []() -> std::unique_ptr<GDALAlgorithm>
        { return std::make_unique<VectorJoin>(); });
}
