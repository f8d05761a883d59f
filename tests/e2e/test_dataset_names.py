"""Names of joins as datasets: words quoted as in a shell, files *.ogrjoin, and all
that is neither: each gives one clear error and harms nobody."""

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
    # $, ` and * mean nothing; a backslash between double quotes stands before " \ $ `
    os.mkdir("$x`y")
    for p in pair:
        shutil.copy(p, "$x`y")
    same(rows('JOIN:-op nearest "\\$x\\`y/points.gpkg" \'$x`y/lots.gpkg\''), expected)
    where = """name = 'p3' OR name = 'it''s "x"'"""
    same(len(rows(name_of("-op", "nearest", "-where", where, *pair))), 1)
    same([list(r[2]) for r in rows("JOIN:-op nearest -select '' -join_select \"\" points.gpkg lots.gpkg")][0],
         ["join_fid", "join_distance"])


def check_bad_words():
    pair = sides()
    refuses("JOIN:-op nearest 'points.gpkg lots.gpkg", says="quot")
    refuses('JOIN:-op nearest "points.gpkg lots.gpkg', says="quot")
    refuses("JOIN:-op nearest points.gpkg lots.gpkg\\")
    refuses("JOIN:")
    refuses("JOIN:   ")
    refuses("JOIN:''")
    refuses("JOIN:points.gpkg")
    refuses(name_of("-op", "nearest", "out.gpkg", *pair), says="lots.gpkg")
    refuses(name_of("-op", "nearest", pair[0]))
    refuses(name_of("-op", "nonsense", *pair), says=["nonsense", "nearest"])
    refuses(name_of("-max_distence", 5, *pair), says=["max_distence", "-max_distance"])
    refuses(name_of("-op", "nearest", "-k", "x", *pair), says="-k")
    refuses(name_of("-op", "nearest", "nofile.gpkg", pair[1]), says="nofile.gpkg")
    refuses(name_of("-op", "nearest", pair[0], "nofile.gpkg"), says="nofile.gpkg")
    refuses(name_of("-op", "nearest", "-input_layer", "x", *pair), says="x")
    refuses(name_of("-op", "nearest", "-join_layer", "y", *pair), says="y")
    for option in ("-where", "-join_where"):  # GeoPackage looks at it when rows are read
        with Said() as said:
            dataset = gdal.OpenEx(name_of("-op", "nearest", option, "nofield = 1", *pair),
                                  gdal.OF_VECTOR | gdal.OF_VERBOSE_ERROR)
            true(dataset is None or dataset.GetLayer(0).GetNextFeature() is None, option)
        true(said.errors and "nofield" in said.errors[0], f"{option}: {said.all}")
    refuses(name_of("-op", "nearest", "-join_sql", "SELEC", *pair))
    refuses(name_of("-op", "nearest", "-select", "nofield", *pair), says="nofield")
    refuses(name_of("-agg", "sum(nofield)", *pair), says="nofield")
    refuses(name_of("-agg", "nofunction(use)", *pair), says="nofunction")
    refuses(name_of("-op", "nearest", "-t_srs", "EPSG:0", *pair))
    refuses(name_of("-max_distance", 5, *pair), says="-op nearest")
    same(sorted(os.listdir()), sorted(pair), "nothing is written")


def check_words_that_are_not_for_datasets():
    pair = sides()
    for words in (("-in_place",), ("-append",), ("-update",), ("-overwrite",), ("-explain",), ("-validate",),
                  ("-benchmark",), ("-unmatched_layer", "x"), ("-unmatched_join_layer", "x"), ("-f", "GPKG"),
                  ("-lco", "A=B"), ("-dsco", "A=B"), ("-write_spec", "s.ogrjoin"), ("-validate_report", "r.csv")):
        error = refuses(name_of("-op", "nearest", *words, *pair), says=words[0])
        true("\n" not in error, error)
    for words in (("--help",), ("--version",), ("--formats",), ("--devices",), ("--config", "A", "B"),
                  ("-h",), ("--optfile", "x"), ("--debug", "on")):
        with Said():
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


def check_random_words():
    """Whatever stands behind JOIN: the host lives."""
    pair = sides()
    r = random.Random(1)
    alphabet = list("-'\"\\ \t\n:=,()@%$*ablotsp0123é€\x01") + ["-op", " nearest", " points.gpkg", " lots.gpkg", "-k ",
                                                              " -where ", "JOIN:", " -agg ", "count", "sum("]
    with Said():
        for _ in range(1500):
            name = "JOIN:" + "".join(r.choice(alphabet) for _ in range(r.randint(0, 40)))
            dataset = gdal.OpenEx(name, gdal.OF_VECTOR)
            if dataset is not None:
                dataset.GetLayer(0).GetNextFeature()
            dataset = None
        for name in ("JOIN:" + "'" * 100001, "JOIN:" + "\\" * 99999, "JOIN:" + "a " * 200000, "JOIN:" + "-" * 300000,
                     "JOIN:-agg " + "(" * 50000 + " a b", "JOIN:-where " + "'" + "(" * 20000 + "' points.gpkg lots.gpkg",
                     "JOIN:-op nearest -where '" + "NOT " * 20000 + "1=1' points.gpkg lots.gpkg"):
            dataset = gdal.OpenEx(name, gdal.OF_VECTOR)
            dataset = None
    same(len(rows(name_of("-op", "nearest", *pair))), 50, "the next one opens")


def check_deep():
    """Joins of joins of joins, with the quoting that this takes."""
    pair = sides()
    name = name_of("-op", "nearest", "-select", "name", "-join_select", "", "-name_fid", "", "-name_distance", "", *pair)
    for depth in range(4):
        name = name_of("-op", "nearest", "-select", "name", "-join_select", "", "-name_fid", "", "-name_distance", "",
                       name, pair[1])
    same(len(rows(name)), 50)


# --- files -----------------------------------------------------------------------


def check_files():
    pair = sides()
    expected = rows(name_of("-op", "nearest", *pair))
    spec_file("a.ogrjoin", "-op", "nearest", *pair)
    same(rows("a.ogrjoin"), expected)
    same(rows(os.path.abspath("a.ogrjoin")), expected)
    shutil.copy("a.ogrjoin", "UPPER.OGRJOIN")
    same(rows("UPPER.OGRJOIN"), expected)
    # Paths are those beside the file, wherever one stands.
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
    refuses(spec_file("x/lost.ogrjoin", "-op", "nearest", *pair), says="points.gpkg")
    # Moved with its layers.
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
    """A JOIN: name inside a file is no path."""
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
    """No end, but an error."""
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
    with Said() as said:
        dataset = gdal.OpenEx(spec_file("e.ogrjoin", "-op", "nearest", "v.vrt", pair[1]), gdal.OF_VECTOR)
        n = len(list(iter(dataset.GetLayer(0).GetNextFeature, None))) if dataset else 0
    true(n == 0 and said.errors, str(said.all))


def check_broken_files():
    pair = sides()
    good = json.dumps({"type": "ogrjoin", "command_line": f"-op nearest {pair[0]} {pair[1]}",
                       "relative_paths_relative_to_this_file": True})
    own = gdal.IdentifyDriverEx(spec_file("own.ogrjoin", *pair)).ShortName

    def write(content):
        with open("s.ogrjoin", "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        return "s.ogrjoin"

    for content in (
        "{", "{}", "[]", "null", "1", '""', good[:-1], good + "}", good.replace("command_line", "comand_line"),
        '{"type":"ogrjoin"}', '{"type":"ogrjoin","command_line":null}', '{"type":"ogrjoin","command_line":5}',
        '{"type":"ogrjoin","command_line":[]}', '{"type":"ogrjoin","command_line":{}}',
        '{"type":"ogrjoin","command_line":""}', '{"type":5,"command_line":"-op nearest points.gpkg lots.gpkg"}',
        '{"type":"other","command_line":"-op nearest points.gpkg lots.gpkg"}',
        '{"type":"ogrjoin","command_line":"-op nearest points.gpkg \'lots.gpkg"}',
        '{"type":"ogrjoin","command_line":"-op nearest points.gpkg\\u0000 lots.gpkg"}',
        '{"type":"ogrjoin","command_line":"-overwrite points.gpkg lots.gpkg"}',
        good.replace("true", '"yes"'), good.replace("true", "5"), "[" * 100000, '{"type":' * 50000,
        '{"type":"ogrjoin",' + '"a":[' * 30000, "\0" * 100, '{"type":"ogrjoin"' + " " * 100000,
        '{"type":"ogrjoin","command_line":"' + "a " * 500000 + '"}', b"\xff\xfe" + good.encode("utf-16-le"),
        b"\xff" * 1000, good.encode().replace(b"nearest", b"near\xffest"),
    ):
        with Said() as said:
            dataset = gdal.OpenEx(write(content), gdal.OF_VECTOR | gdal.OF_VERBOSE_ERROR)
        if dataset is not None:  # where the mistake makes no difference
            same(len(list(dataset.GetLayer(0))), 50, content[:100])
        else:
            true(said.errors, f"an error is told: {content[:100]}")
        dataset = None
    # A mark of the encoding, white space, other members: all of no importance.
    for content in (b"\xef\xbb\xbf" + good.encode(), b" \n\t" + good.encode() + b"\n\n",
                    good[:-1].encode() + b',"more":{"a":[1,2]},"note":"x"}'):
        same(gdal.IdentifyDriverEx(write(content)).ShortName, own)
        with Said():
            dataset = gdal.OpenEx("s.ogrjoin", gdal.OF_VECTOR)
        if dataset is not None:
            same(len(list(dataset.GetLayer(0))), 50)
        dataset = None


def check_mutated_files():
    pair = sides()
    good = json.dumps({"type": "ogrjoin", "command_line": f"-op nearest -k 2 -max_distance 30 {pair[0]} {pair[1]}",
                       "relative_paths_relative_to_this_file": True}).encode()
    r = random.Random(2)
    with Said():
        for i in range(1500):
            content = bytearray(good)
            for _ in range(r.randint(1, 4)):
                at = r.randrange(len(content))
                kind = r.randrange(4)
                if kind == 0:
                    content[at] = r.randrange(256)
                elif kind == 1:
                    del content[at:at + r.randint(1, 20)]
                elif kind == 2:
                    content[at:at] = content[r.randrange(len(content)):][:r.randint(1, 30)]
                else:
                    content[at:at] = bytes(r.randrange(256) for _ in range(r.randint(1, 8)))
                if not content:
                    content = bytearray(b"x")
            with open("m.ogrjoin", "wb") as file:
                file.write(content)
            dataset = gdal.OpenEx("m.ogrjoin", gdal.OF_VECTOR)
            if dataset is not None and i % 10 == 0:
                dataset.GetLayer(0).GetNextFeature()
            dataset = None


def check_random_files():
    r = random.Random(6)
    with Said():
        for i in range(200):
            with open("m.ogrjoin", "wb") as file:
                file.write(bytes(r.randrange(256) for _ in range(r.choice((0, 1, 10, 100, 5000)))))
            same(gdal.OpenEx("m.ogrjoin", gdal.OF_VECTOR), None)


def check_a_huge_file():
    """Larger than any specification: it is not read into memory, or is an error."""
    sides()
    with open("huge.ogrjoin", "wb") as file:
        file.write(b'{"type":"ogrjoin","command_line":"')
        file.truncate(3 * 2**30)
    with Said() as said:
        same(gdal.OpenEx("huge.ogrjoin", gdal.OF_VECTOR | gdal.OF_VERBOSE_ERROR), None)
    true(said.errors, "an error is told")


# --- -write_spec -----------------------------------------------------------------


def check_write_spec():
    pair = sides()
    words = ("-op", "nearest", "-k", "2", "-where", "name <> 'it''s'")
    expected = rows(name_of(*words, *pair))
    r = go(*words, "-write_spec", "s.ogrjoin", *pair)
    same(sorted(os.listdir()), sorted((*pair, "s.ogrjoin")), "no join is run")
    same(rows("s.ogrjoin"), expected)
    with open("s.ogrjoin", encoding="utf-8") as file:
        same(json.load(file)["type"], "ogrjoin")
    r = client("ogrinfo", "-q", "-al", "-so", "s.ogrjoin")
    # In another folder: paths are made those beside the file.
    os.makedirs("deep/er")
    go(*words, "-write_spec", "deep/er/s.ogrjoin", *pair)
    same(rows("deep/er/s.ogrjoin"), expected)
    here = os.getcwd()
    os.chdir("deep")
    try:
        same(rows("er/s.ogrjoin"), expected)
        go(*words, "-write_spec", "../up.ogrjoin", "../points.gpkg", os.path.abspath("../lots.gpkg"))
    finally:
        os.chdir(here)
    same(rows("up.ogrjoin"), expected)
    # What does not join is not written.
    for bad in (("-op", "nonsense", *pair), ("-op", "nearest", "nofile.gpkg", pair[1])):
        r = run("-write_spec", "bad.ogrjoin", *bad)
        same(r.rc, 1, str(r))
        true(not os.path.exists("bad.ogrjoin"), "none is written")
    r = run("-op", "nearest", "-write_spec", "nofolder/s.ogrjoin", *pair)
    same(r.rc, 1, str(r))
    true("nofolder" in r.err, str(r))


if __name__ == "__main__":
    main(globals())
