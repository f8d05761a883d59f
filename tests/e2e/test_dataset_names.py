"""Names of joins as datasets: words quoted as in a shell, and files *.ogrjoin.  Every
invalid name gives one clear error, and changes no file."""

import zipfile

from dataset import *


sides = layers


# --- words -----------------------------------------------------------------------


def check_quoting():
    pair = sides()
    expected = rows(name_of("-op", "nearest", *pair))
    for folder in ("a b", "it's", 'say "so"', "back\\slash", "tab\there", "dollar$HOME", "star*", "Zoë €", "#x",
                   "a;b", "a&b", "(x)", "~", "-op", "new\nline", "JOIN:"):
        os.mkdir(folder)
        shutil.copy(pair[0], folder)
        shutil.copy(pair[1], folder)
        paths = [os.path.join(folder, p) for p in pair]
        if folder == "-op":
            paths = [os.path.join(".", p) for p in paths]
        same(rows(name_of("-op", "nearest", *paths)), expected, folder)
    a, b = "a b/points.gpkg", "a b/lots.gpkg"
    for line in (
        f'-op nearest "{a}" "{b}"', f"-op nearest '{a}' '{b}'", "-op nearest a\\ b/points.gpkg a\\ b/lots.gpkg",
        f"  -op   nearest  '{a}'   '{b}'  ", f"\t-op\tnearest\t'{a}'\n'{b}'\n", f"-op near'est' a' 'b/points.gpkg '{b}'",
        f"--op nearest '{a}' '{b}'", f"-OP NEAREST '{a}' '{b}'", f"'{a}' '{b}' -op nearest",
        f"'-op' \"nearest\" '{a}' '{b}'",
    ):
        same(rows("JOIN:" + line), expected, line)
    # $, ` and * are plain characters. Between double quotes, a backslash
    # escapes " \ $ and `
    os.mkdir("$x`y")
    for p in pair:
        shutil.copy(p, "$x`y")
    same(rows('JOIN:-op nearest "\\$x\\`y/points.gpkg" \'$x`y/lots.gpkg\''), expected)
    where = """name = 'p3' OR name = 'it''s "x"'"""
    same(len(rows(name_of("-op", "nearest", "-where", where, *pair))), 1)
    same([list(r[2]) for r in rows("JOIN:-op nearest -select '' -join_select \"\" points.gpkg lots.gpkg")][0],
         ["join_fid", "join_distance"])


def check_bad_words():
    """Invalid names, and one error of each kind. test_command and test_bad_input test
    all errors."""
    pair = sides()
    refuses("JOIN:-op nearest 'points.gpkg lots.gpkg", message="quot")
    refuses('JOIN:-op nearest "points.gpkg lots.gpkg', message="quot")
    refuses("JOIN:-op nearest points.gpkg lots.gpkg\\")
    needed = "0 datasets given, 2 needed: JOIN:[options] input_ds join_ds"
    refuses("JOIN:", message=needed)
    refuses("JOIN:   ", message=needed)
    refuses("JOIN:''", message="1 dataset given")
    refuses("JOIN:points.gpkg ''", message="empty dataset name")
    refuses("JOIN:points.gpkg", message="1 dataset given")
    refuses(name_of("-op", "nearest", "out.gpkg", *pair), message=["3 datasets given", "lots.gpkg"])
    refuses(name_of("-op", "nearest", "a", "out.gpkg", *pair), message="one word too many")
    refuses(name_of("-op", "nearest", "-where", "@no_such_file", *pair), message="no_such_file")
    refuses(name_of("-op", "nearest", pair[0]))
    refuses(name_of("-op", "nearest", "nofile.gpkg", pair[1]), message="nofile.gpkg")
    refuses(name_of("-op", "nearest", pair[0], "nofile.gpkg"), message="nofile.gpkg")
    # GeoPackage evaluates this condition when rows are read
    for option in ("-where", "-join_where"):
        with Messages() as messages:
            dataset = gdal.OpenEx(name_of("-op", "nearest", option, "nofield = 1", *pair),
                                  gdal.OF_VECTOR | gdal.OF_VERBOSE_ERROR)
            true(dataset is None or dataset.GetLayer(0).GetNextFeature() is None, option)
        true(messages.errors and "nofield" in messages.errors[0], f"{option}: {messages.all}")
    refuses(name_of("-agg", "sum(nofield)", *pair), message="nofield")
    same(sorted(os.listdir()), sorted(pair), "nothing is written")


def check_words_that_are_not_for_datasets():
    pair = sides()
    for words in (("-in_place",), ("-append",), ("-update",), ("-overwrite",), ("-explain",), ("-validate",),
                  ("-benchmark",), ("-unmatched_layer", "x"), ("-unmatched_join_layer", "x"), ("-f", "GPKG"),
                  ("-lco", "A=B"), ("-dsco", "A=B"), ("-write_spec", "s.ogrjoin"), ("-validate_report", "r.csv")):
        error = refuses(name_of("-op", "nearest", *words, *pair), message=f"{words[0]} has no meaning")
        true("\n" not in error, error)
    for words in (("--help",), ("--version",), ("--formats",), ("--devices",), ("--config", "A", "B"),
                  ("-h",), ("--optfile", "x"), ("--debug", "on")):
        with Messages():
            dataset = gdal.OpenEx(name_of(*words, *pair), gdal.OF_VECTOR)
        dataset = None
    r = client("ogrinfo", "-q", name_of("--help"), rc=1)
    true("Exit codes" not in r.out, "no help on the host's stdout")
    same(sorted(os.listdir()), sorted(pair), "nothing is written")


def check_not_vector():
    pair = sides()
    driver = gdal.GetDriverByName("GTiff")
    driver.Create("r.tif", 10, 10).SetGeoTransform([0, 1, 0, 0, 0, -1])
    os.mkdir("folder")
    with open("t.txt", "w", encoding="utf-8") as file:
        file.write("some text\n")
    open("empty.gpkg", "wb").close()
    make("table.gpkg", [(None, {"name": "a"})], kind=ogr.wkbNone, srs=None)
    for bad in ("r.tif", "folder", "t.txt", "empty.gpkg", "/dev/null", "", ".", "/", "table.gpkg", "x" * 5000,
                "http://127.0.0.1:1/x.gpkg", "PG:dbname=none"):
        refuses(name_of("-op", "nearest", bad, pair[1]))
        refuses(name_of("-op", "nearest", pair[0], bad))


def check_deep():
    """Joins whose sides are joins, several levels deep, with the quoting that this
    needs."""
    pair = sides()
    name = name_of("-op", "nearest", "-select", "name", "-join_select", "", "-name_fid", "", "-name_distance", "", *pair)
    for depth in range(4):
        name = name_of("-op", "nearest", "-select", "name", "-join_select", "", "-name_fid", "", "-name_distance", "",
                       name, pair[1])
    same(len(rows(name)), 50)


def check_too_deep():
    """Specifications that name other specifications, on both sides. At most eight
    levels are allowed; more are an error of one line. So is a specification that names
    itself."""
    pair = sides()
    spec_file("n1.ogrjoin", "-pick", "first", *pair)
    for i in range(2, 13):
        spec_file(f"n{i}.ogrjoin", "-pick", "first", "-prefix", f"j{i}_", "-join_select", "", f"n{i - 1}.ogrjoin",
                  pair[1] if i < 6 else f"n{i - 1}.ogrjoin")
    same(len(rows("n8.ogrjoin")), 50)
    spec_file("itself.ogrjoin", "itself.ogrjoin", "itself.ogrjoin")
    for name in ("n9.ogrjoin", "n12.ogrjoin", "itself.ogrjoin", name_of("n8.ogrjoin", pair[1])):
        begin = time.process_time()
        with Messages() as messages:
            same(gdal.OpenEx(name, gdal.OF_VECTOR), None, name)
        true(time.process_time() - begin < 20, name)
        same(len(messages.errors), 1, str(messages.all))
        message = "recursively" if name == "itself.ogrjoin" else "more than 8 deep"
        true(message in messages.errors[0], str(messages.all))


# --- files -----------------------------------------------------------------------


def check_files():
    pair = sides()
    expected = rows(name_of("-op", "nearest", *pair))
    spec_file("a.ogrjoin", "-op", "nearest", *pair)
    same(rows("a.ogrjoin"), expected)
    same(rows(os.path.abspath("a.ogrjoin")), expected)
    shutil.copy("a.ogrjoin", "UPPER.OGRJOIN")
    same(rows("UPPER.OGRJOIN"), expected)
    # Relative paths start at the folder of the specification, whatever the current folder is.
    os.makedirs("x/y")
    spec_file("x/y/b.ogrjoin", "-op", "nearest", "../../points.gpkg", "../../lots.gpkg")
    same(rows("x/y/b.ogrjoin"), expected)
    here = os.getcwd()
    os.chdir("x")
    try:
        same(rows("y/b.ogrjoin"), expected)
        same(rows("../a.ogrjoin"), expected)
    finally:
        os.chdir(here)
    spec_file("x/absolute.ogrjoin", "-op", "nearest", *map(os.path.abspath, pair))
    same(rows("x/absolute.ogrjoin"), expected)
    spec_file("x/not_relative.ogrjoin", "-op", "nearest", *pair, relative_paths_relative_to_this_file=False)
    same(rows("x/not_relative.ogrjoin"), expected)
    refuses(spec_file("x/lost.ogrjoin", "-op", "nearest", *pair), message="points.gpkg")
    # the specification is moved together with its layers
    os.mkdir("moved")
    for path in (*pair, "a.ogrjoin"):
        shutil.copy(path, "moved")
    os.rename("moved", "elsewhere")
    same(rows("elsewhere/a.ogrjoin"), expected)
    os.symlink("elsewhere/a.ogrjoin", "link.ogrjoin")
    same(rows("link.ogrjoin"), expected)


def check_files_in_other_file_systems():
    pair = sides()
    expected = rows(name_of("-op", "nearest", *pair))
    spec_file("a.ogrjoin", "-op", "nearest", *pair)
    with zipfile.ZipFile("z.zip", "w") as file:
        for path in (*pair, "a.ogrjoin"):
            file.write(path)
    same(rows("/vsizip/z.zip/a.ogrjoin"), expected)
    with open("a.ogrjoin", "rb") as file:
        gdal.FileFromMemBuffer("/vsimem/d/a.ogrjoin", file.read())
    for path in pair:
        with open(path, "rb") as file:
            gdal.FileFromMemBuffer("/vsimem/d/" + path, file.read())
    same(rows("/vsimem/d/a.ogrjoin"), expected)
    spec_file("b.ogrjoin", "-op", "nearest", "/vsimem/d/points.gpkg", "/vsizip/z.zip/lots.gpkg")
    same(rows("b.ogrjoin"), expected)
    for path in gdal.ReadDir("/vsimem/d"):
        gdal.Unlink("/vsimem/d/" + path)


def check_joins_in_files():
    """A name JOIN: in a specification file is not taken as a path."""
    pair = sides()
    inner = name_of("-op", "nearest", *map(os.path.abspath, pair))
    expected = rows(name_of("-op", "nearest", "-prefix", "o_", inner, pair[1]))
    os.mkdir("x")
    spec_file("x/a.ogrjoin", "-op", "nearest", "-prefix", "o_", inner, "../lots.gpkg")
    same(rows("x/a.ogrjoin"), expected)
    spec_file("inner.ogrjoin", "-op", "nearest", *pair)
    spec_file("x/b.ogrjoin", "-op", "nearest", "-prefix", "o_", "../inner.ogrjoin", "../lots.gpkg")
    same(rows("x/b.ogrjoin"), expected)


def check_files_that_name_themselves():
    """A specification that names itself gives an error."""
    pair = sides()
    refuses(spec_file("a.ogrjoin", "-op", "nearest", "a.ogrjoin", pair[1]))
    refuses(spec_file("a.ogrjoin", "-op", "nearest", pair[0], "a.ogrjoin"))
    spec_file("b.ogrjoin", "-op", "nearest", "c.ogrjoin", pair[1])
    refuses(spec_file("c.ogrjoin", "-op", "nearest", "b.ogrjoin", pair[1]))
    line = shlex.join(["-op", "nearest", "JOIN:-op nearest d.ogrjoin lots.gpkg", pair[1]])
    refuses(spec_file("d.ogrjoin", line=line, relative_paths_relative_to_this_file=False))
    with open("v.vrt", "w", encoding="utf-8") as file:
        file.write('<OGRVRTDataSource><OGRVRTLayer name="l"><SrcDataSource>e.ogrjoin</SrcDataSource>'
                   "<SrcLayer>points</SrcLayer></OGRVRTLayer></OGRVRTDataSource>")
    with Messages() as messages:
        dataset = gdal.OpenEx(spec_file("e.ogrjoin", "-op", "nearest", "v.vrt", pair[1]), gdal.OF_VECTOR)
        n = len(list(iter(dataset.GetLayer(0).GetNextFeature, None))) if dataset else 0
    true(n == 0 and messages.errors, str(messages.all))


def check_what_a_file_says():
    sides()
    words = "-op nearest points.gpkg lots.gpkg"
    for text, name in (
        ('{"type":"ogrjoin","command_line":"-nln \'a b\' WORDS"}', "a b"),
        ('\uFEFF { "command_line" : "-nln \'\\u00fc\\"\\/\' WORDS" , "type" : "ogrjoin" }\n', 'ü"/'),
        ('{"type":"ogrjoin","command_line":"-nln \'\\ud83d\\ude00\\u20ac\' WORDS"}', "😀€"),
        ('{"x":[1,-2.5e3,{"y":[]},{},"z",true,null],"type":"ogrjoin",'
         '"relative_paths_relative_to_this_file":true,"command_line":"WORDS"}', "points"),
        ("", "JSON"), (" ", "JSON"), ("[]", "JSON"), ("{", "JSON"), ("{}", '"type"'),
        ('{"type":"x","command_line":""}', '"type"'), ('{"type":1}', '"type"'),
        ('{"type":"ogrjoin"}', "command_line"), ('{"type":"ogrjoin","command_line":3}', "command_line"),
        ('{"type":"ogrjoin","command_line":"a', "JSON"), ('{"type":"ogrjoin","command_line":"\\x"}', "JSON"),
        ('{"type":"ogrjoin","command_line":"\\u12"}', "JSON"),
        ('{"type":"ogrjoin","command_line":"\\u0000"}', "JSON"), ('{"type":"ogrjoin","command_line":"a"', "JSON"),
        ('{"type":"ogrjoin","command_line":"a","relative_paths_relative_to_this_file":1}', "true or false"),
        ('{"type":"ogrjoin","command_line":"-op nowhere a b"}', "no such join"),
        ('{"a":[1 2]}', "JSON"), ('{"a":{"b"}}', "JSON"), ('{"a":' + "[" * 300, "JSON"),
    ):
        with open("s.ogrjoin", "w", encoding="utf-8") as file:
            file.write(text.replace("WORDS", words))
        if "WORDS" in text:
            same(Layer("s.ogrjoin").name, name, text)
        else:
            refuses("s.ogrjoin", message=["s.ogrjoin: ", name])


def check_a_huge_file():
    """A file larger than any specification is refused without being read into memory."""
    sides()
    with open("huge.ogrjoin", "wb") as file:
        file.write(b'{"type":"ogrjoin","command_line":"')
        file.truncate(3 * 2**30)
    with Messages() as messages:
        same(gdal.OpenEx("huge.ogrjoin", gdal.OF_VECTOR | gdal.OF_VERBOSE_ERROR), None)
    true(messages.errors, "an error is reported")


if __name__ == "__main__":
    main(globals())
