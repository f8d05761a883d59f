"""Output streams, exit codes, and the summary as text and as JSON."""

from e2e import *


def check_summary_line():
    words = layers()
    answers = nearest(Layer("points.gpkg").shapes(), Layer("lots.gpkg").rows, 50.0)
    n = sum(1 for a in answers if a)
    r = join("-max_distance", 50, "-threads", 1, "o.gpkg", *words)
    same(r.out, "", "stdout is for progress and data")
    line = r.err.rstrip("\n").split("\n")[-1]
    for text in ("50 rows in", f"{n} matched", f"{50 - n} unmatched", f"{n} pairs",
                 "read ", "join ", "write ", "backend cpu", "1 thread"):
        true(text in line, f"'{text}' in {line}")


def check_quiet():
    words = layers()
    r = join("-q", "o.gpkg", *words)
    same((r.out, r.err), ("", ""))
    r = join("-quiet", "-overwrite", "o.gpkg", *words)
    same((r.out, r.err), ("", ""))
    # -q does not suppress errors.
    r = run("-op", "nearest", "-q", "o.gpkg", *words)
    same(r.rc, 1)
    true(r.err.startswith("ERROR") and r.err.count("\n") == 1, str(r))


def check_progress():
    words = layers()
    r = join("-progress", "o.gpkg", *words)
    same(r.out.replace("\n", ""), "0...10...20...30...40...50...60...70...80...90...100"
         " - done.")
    r = join("o2.gpkg", *words)
    same(r.out, "", "no progress into a pipe")


def check_json_summary():
    words = layers()
    make("odd.gpkg", [("POINT (980100 200100)", {"name": 'a "b" \\'}),
                      (None, {"name": "n"}), ("POINT EMPTY", {"name": "e"})])
    answers = nearest(Layer("points.gpkg").shapes(), Layer("lots.gpkg").rows, 100.0, 2)
    join("-max_distance", "100", "-k", "2", "o.gpkg", *words, "-json_summary", "s.json",
         "-threads", "2")
    s = summary("s.json")
    same(s["rows_in"], 50)
    same(s["matched"], sum(1 for a in answers if a))
    same(s["unmatched"], sum(1 for a in answers if not a))
    same(s["pairs"], sum(len(a) for a in answers))
    same(s["rows_written"], s["pairs"] + s["unmatched"])
    same(s["rows_counted_after_closing"], s["rows_written"])
    same(s["rows_left_out"], 0)
    same(s["rows_validated"], None)
    same(s["max_distance"], 100.0)
    same(s["op"], "nearest")
    same(s["backend"], "cpu")
    same(s["threads"], 2)
    same(s["destination"], "o.gpkg")
    same(s["input"]["layer"], "points")
    same(s["join"]["rows"], 20)
    true(s["seconds"]["total"] >= 0, "seconds")
    name = 'o "x" \\ ü.gpkg'
    join(name, "odd.gpkg", words[1], "-json_summary", "s.json")
    s = summary("s.json")
    same(s["destination"], name)
    same(s["max_distance"], None)
    same(s["input"]["skipped"]["null"], 1)
    same(s["input"]["skipped"]["empty"], 1)
    # The JSON summary is written with -q, too, and replaces an old file as a whole.
    r = join("-q", "-overwrite", "o.gpkg", *words, "-json_summary", "s.json")
    same(summary("s.json")["rows_in"], 50)


def check_json_summary_on_a_stream():
    words = layers()
    for name in ("/dev/stdout", "/vsistdout/", "/dev/fd/1"):
        r = join("-overwrite", "o.gpkg", *words, "-json_summary", name)
        same(json.loads(r.out)["rows_in"], 50)
        true("50 rows in" in r.err, str(r))
    # A shell may redirect stdout to a file. The file keeps its earlier
    # content.
    with open("log", "w", encoding="utf-8") as log:
        log.write("before\n")
        log.flush()
        subprocess.run([OGRJOIN, "-op", "nearest", "-overwrite", "o.gpkg", *words, "-json_summary",
                        "/dev/stdout"], stdout=log, stderr=subprocess.DEVNULL, check=True)
        log.seek(0, os.SEEK_END)
        log.write("after\n")
    with open("log", encoding="utf-8") as log:
        lines = log.read().splitlines()
    same((lines[0], lines[-1]), ("before", "after"))
    same(json.loads("\n".join(lines[1:-1]))["rows_in"], 50)
    fails("-f", "CSV", "/vsistdout/", *words, "-json_summary", "/dev/stdout",
          message="would overwrite the output")


def check_json_summary_that_cannot_be_written():
    words = layers()
    r = run("-op", "nearest", "o.gpkg", *words, "-json_summary", "no/such/s.json")
    same(r.rc, 1, str(r))
    errors = [x for x in r.err.splitlines() if x.startswith("ERROR")]
    same(len(errors), 1, str(r))
    true("json_summary" in errors[0], str(r))
    # The error is reported before the join starts.
    true(not os.path.exists("o.gpkg"), "nothing was joined")
    fails("o.gpkg", *words, "-json_summary", ".", message=["json_summary", "directory"])
    # An error that is noticed only at the end, when the output is complete.
    r = run("-op", "nearest", "o.gpkg", *words, "-json_summary", "/dev/full")
    same((r.rc, r.err.count("ERROR")), (1, 1), str(r))
    true(r.err.rstrip().endswith("; all rows are written to o.gpkg"), str(r))
    dataset = ogr.Open("o.gpkg")
    same(dataset.GetLayer(0).GetFeatureCount(), 50, "rows")
    dataset = None
    os.remove("o.gpkg")
    r = run("-benchmark", *words, "-benchmark_csv", "no/such/t.csv")
    same((r.rc, r.out), (1, ""), str(r))
    true(r.err.startswith("ERROR 1: -benchmark_csv: cannot write"), str(r))


def check_names_in_messages_of_drivers():
    """Messages of drivers name the output as the user wrote it, not as the temporary
    file."""
    words = layers()
    os.mkdir("sub")
    for dst in ("sub/o.gpkg", os.path.abspath("sub/p.gpkg"), "q.gpkg"):
        r = join(dst, *words, "-lco", "NOSUCH=1")
        true(f" {dst} " in r.err and ".ogrjoin-" not in r.err, str(r))


def check_empty_join_layer():
    """There is one warning, with or without -q, and with -explain. The output is
    unchanged."""
    make("points.gpkg", [("POINT (1 1)", {"name": "a"})], kind=ogr.wkbPoint)
    lots = make("none.gpkg", [], kind=ogr.wkbPoint)
    with open("none.csv", "w", encoding="utf-8") as file:
        file.write("id,WKT\n")
    line = "join layer 'none' has no features: nothing can match"
    for words in ((), ("-agg", "count"), ("-k", 2), ("-how", "full"), ("-memory", "1M")):
        r = join("-overwrite", "-q", *words, "o.gpkg", "points.gpkg", lots)
        same(r.err, f"Warning 1: {line}\n", str(words))
        same(len(Layer("o.gpkg").rows), 1, str(words))
    r = join("-overwrite", "-q", "-how", "inner", "o.gpkg", "points.gpkg", "none.csv", "-crs", "ignore")
    same(r.err, f"Warning 1: {line}\n")
    r = join("-explain", "p.gpkg", "points.gpkg", lots)
    same(r.err, f"Warning 1: {line}\n")
    lots = make("lots.gpkg", [("POINT (1 1)", {"name": "b"})], kind=ogr.wkbPoint)
    r = join("-overwrite", "-q", "-join_where", "name = 'c'", "o.gpkg", "points.gpkg", lots)
    true("join layer 'lots' has no features under its filters" in r.err, str(r))
    same(join("-overwrite", "-q", "o.gpkg", "points.gpkg", lots).err, "")


def check_texts_that_are_not_utf8():
    """Texts that are not UTF-8 are counted in all fields that are read, compared or
    written. They are written unchanged, as by ogr2ogr."""
    texts = ("Z\u00fcrich", "Caf\u00e9", "plain", "\u00e9t\u00e9 et hiver, longue phrase")
    for name, encoding in (("l1", "latin-1"), ("l2", "utf-8")):
        with open(f"{name}.csv", "w", encoding=encoding) as file:
            file.write("id,name,WKT\n")
            for i, text in enumerate(texts):
                file.write(f'{i},"{text}",POINT ({i} {i})\n')
    message = "layer 'l1': 3 text values are not UTF-8, and compared and written as they are; recode"
    raw = [t.encode("latin-1") for t in texts]
    for words, ends in ((("-similar", "name:0.5"), ("csv",)), (("-on", "name", "-similar", "name:0.1"), ("gpkg",)),
                        (("-op", "intersects"), ("gpkg", "fgb", "geojson", "csv")),
                        (("-agg", "count, concat(name)"), ("gpkg",))):
        for end in ends:
            for pair, role in ((("l1.csv", "l2.csv"), "input"), (("l2.csv", "l1.csv"), "join")):
                out = f"o.{end}"
                r = succeeds("-overwrite", "-q", *words, out, *pair)
                same(r.err.count("not UTF-8"), 1, str(r))
                true(f"{role} {message}" in r.err and "iconv" in r.err, str(r))
                if role == "input":
                    dataset = gdal.OpenEx(out, gdal.OF_VECTOR)
                    layer = dataset.GetLayer(0)
                    got = [bytes(f.GetFieldAsBinary("name")) for f in layer]
                    true(set(got) <= set(raw) and raw[0] in got, f"{out} {got}")
                    layer = dataset = None
                os.remove(out)
    r = succeeds("-q", "-op", "intersects", "o.gpkg", "l2.csv", "l2.csv")
    same(r.err, "")
    # Fields that are neither compared nor written get no warning.
    r = succeeds("-overwrite", "-q", "-op", "intersects", "-select", "id", "o.gpkg", "l1.csv", "l2.csv")
    same(r.err, "")
    r = succeeds("-explain", "-similar", "name:0.5", "p.gpkg", "l1.csv", "l2.csv")
    true(f"input {message}" in r.err, str(r))
    # There is no warning if a Shapefile, or an open option, declares the
    # encoding.
    gdal.VectorTranslate("s.shp", "l2.csv", layerCreationOptions=["ENCODING=ISO-8859-1"])
    r = succeeds("-overwrite", "-q", "-op", "intersects", "o.gpkg", "s.shp", "l2.csv")
    same(r.err, "")
    r = succeeds("-overwrite", "-q", "-op", "intersects", "-oo", "ENCODING=", "o.gpkg", "s.shp", "l2.csv")
    true("input layer 's': 3 text values are not UTF-8" in r.err and "-oo ENCODING=ISO-8859-1" in r.err, str(r))
    r = succeeds("-overwrite", "-q", "-op", "intersects", "-joo", "ENCODING=", "o.gpkg", "l2.csv", "s.shp")
    true("join layer 's': 3 text values are not UTF-8" in r.err and "-joo ENCODING=ISO-8859-1" in r.err, str(r))
    # The texts are counted by lanes and by GDAL, with any threads and batches.
    for end in ("gpkg", "fgb"):
        gdal.VectorTranslate(f"l1.{end}", "l1.csv", layerName="l1")
        for env in ({}, {"OGRJOIN_LANES": "NO"}):
            for words in ((), ("-threads", 1), ("-batch", 3)):
                r = succeeds("-overwrite", "-q", "-op", "intersects", *words, "o.gpkg", f"l1.{end}", f"l1.{end}", env=env)
                same(r.err.count("3 text values are not UTF-8"), 2, f"{end} {env} {words} {r}")
                r = succeeds("-overwrite", "-q", "-op", "intersects", *words, "-limit", 1, "o.gpkg", f"l1.{end}",
                             "l2.csv", env=env)
                true(r.err.count("not UTF-8") <= 1, str(r))


def check_crs_by_number():
    words = layers()
    fails("o.gpkg", *words, "-s_srs", "2263", message="-s_srs '2263' is not a CRS that PROJ "
          "knows; write EPSG:2263")
    fails("o.gpkg", *words, "-t_srs", "here", message="write for example EPSG:2263")


def check_several_geometry_columns():
    words = layers()
    dataset = ogr.GetDriverByName("SQLite").CreateDataSource("two.sqlite")
    layer = dataset.CreateLayer("t", crs("EPSG:2263"), ogr.wkbPoint,
                                ["GEOMETRY_NAME=here"])
    there = ogr.GeomFieldDefn("there", ogr.wkbPoint)
    there.SetSpatialRef(crs("EPSG:2263"))
    layer.CreateGeomField(there)
    feature = ogr.Feature(layer.GetLayerDefn())
    for i, at in enumerate(("POINT (980100 200100)", "POINT (980200 200100)")):
        feature.SetGeomField(i, ogr.CreateGeometryFromWkt(at))
    layer.CreateFeature(feature)
    feature = layer = dataset = None
    r = join("o.gpkg", "two.sqlite", words[1])
    true("input layer 't' has 2 geometry columns: 'here' is joined" in r.err and
         "-input_geometry" in r.err, str(r))
    r = join("o2.gpkg", words[0], "two.sqlite")
    true("join layer 't' has 2 geometry" in r.err and "-join_geometry" in r.err, str(r))
    r = join("o3.gpkg", "two.sqlite", words[1], "-sql", "SELECT there FROM t")
    true("geometry columns" not in r.err, str(r))
    same(Layer("o3.gpkg").shapes()[0].GetX(), 980200.0)


def check_help_and_version():
    r = run("--help")
    same((r.rc, r.err), (0, ""))
    for word in ("-max_distance", "-in_place", "geos", "spatialindex", "Exit codes"):
        true(word in r.out, word)
    same(run("-help").out, r.out)
    same(run("-h").rc, 0)
    r = run("--version")
    same(r.rc, 0)
    true(r.out.startswith("ogrjoin ") and "GDAL" in r.out, str(r))
    r = run("--formats")
    same(r.rc, 0)
    true("GPKG" in r.out and "FlatGeobuf" in r.out, str(r))
    r = run()
    same(r.rc, 1, "no words")
    true("ogrjoin [options] dst_ds input_ds join_ds" in r.out, str(r))
    true("--help WORD" in r.out and r.out.count("\n") < 30, str(r))


def check_help_of_a_word():
    everything = run("--help").out
    for words in (("--help", "agg"), ("-help", "agg"), ("-h", "-agg"), ("--help", "--AGG")):
        r = run(*words)
        same((r.rc, r.err), (0, ""))
        true("  -agg LIST " in r.out and "-max_distance" not in r.out, str(r))
        true(r.out.strip("\n").replace("Rows and columns of the output:\n", "") in everything, str(r))
    r = run("--help", "nearest")  # a join, and the options that it takes
    true(r.out.startswith("Joins (-op):\n  nearest ") and "  -ties" in r.out and "-on " not in r.out, str(r))
    # a short word finds only the option of this name, not longer names that
    # contain it
    r = run("--help", "k")
    same([line.split()[0] for line in r.out.splitlines() if line.startswith("  -")], ["-k"], str(r))
    r = run("--help", "coordinate")  # a section
    true("  -t_srs CRS" in r.out and "  -s_srs" in r.out and "  -agg" not in r.out, str(r))
    true("  -how" in run("--help", "anti").out, "an argument")
    true("  -agg LIST" in run("--help", "median").out, "a word of the text alone")
    true("  -along_field" in run("--help", "linear").out, "linear referencing")
    true("  -during" in run("--help", "allen").out, "Allen's relations")
    fails("--help", "overwrit_", op=False,
          message=["no option, join or section has this word", "did you mean -overwrite?"])
    fails("--help", "-zzzzzz", op=False, message="ogrjoin --help lists all")
    same(run("--help", "agg", "nearest").out, everything)
    same(run("-op", "nearest", "--help").out, everything)


def check_completion_of_two_dashes():
    script = os.path.join(HERE, "..", "..", "driver", "ogrjoin.bash")
    def completed(word):
        line = f'. "{script}"; COMP_WORDS=(ogrjoin "{word}"); COMP_CWORD=1; _ogrjoin; printf "%s\n" "${{COMPREPLY[@]}}"'
        path = os.path.dirname(os.path.abspath(OGRJOIN)) + ":" + os.environ["PATH"]
        return subprocess.run(["bash", "-c", line], env=dict(os.environ, PATH=path),
                              capture_output=True, text=True, check=True).stdout.split()
    one, two = completed("-ma"), completed("--ma")
    true("-max_distance" in one, str(one))
    same(two, ["-" + word for word in one])
    true("--version" in completed("--ver"), "those of GDAL")


def check_words_after_options():
    words = layers()
    for option, word, message in (("-one_to_one", "bset", "greedy|best"), ("-events", "some", "all")):
        fails(option, word, "o.gpkg", *words, message=[f"{option} {word}: ", message, "or no word"])


def check_tables_without_geometry():
    layers()
    with open("stats.csv", "w") as file:
        file.write("name,v\n" "a,1\n")
    fails("-on", "name", "o.gpkg", "points.gpkg", "stats.csv", op=False,
          message=["X_POSSIBLE_NAMES=lon", "with -op attributes -on name"])
    fails("-on", "name=a,b", "o.gpkg", "points.gpkg", "stats.csv", op=False,
          message="with -op attributes -on name=a,b")
    fails("o.gpkg", "points.gpkg", "stats.csv", op=False, message="-op attributes -on F")
    message = fails("-on", "name", "o.gpkg", "points.gpkg", "stats.csv", message="has no geometry")
    true("attributes" not in message, message)
    # The message recommends the join by equal fields. It works.
    make("keys.gpkg", [("POINT (0 0)", {"key": 1}), ("POINT (0 0)", {"key": 12}), (None, {"key": 3})],
         fields=[("key", ogr.OFTInteger)])
    with open("more.csv", "w") as file:
        file.write("key,v\n" "12,a\n" "1,b\n" "12,c\n" "121,d\n" ",e\n")
    succeeds("-op", "attributes", "-on", "key", "o.gpkg", "keys.gpkg", "more.csv")
    same([(row[2]["key"], row[2]["v"]) for row in Layer("o.gpkg").rows],
         [(1, "b"), (12, "a"), (12, "c"), (3, None)])


def check_config():
    words = layers()
    r = join("--config", "CPL_DEBUG", "ON", "o.gpkg", *words)
    true("GDAL" in r.err or "GPKG" in r.err, "GDAL's own debug lines")
    r = run("--config", "GDAL_SKIP", "GPKG", "-op", "nearest", "o.fgb", *words)
    same(r.rc, 1)
    # --config NAME=VALUE, which GDAL accepts from 3.9 on.
    if int(gdal.VersionInfo("VERSION_NUM")) >= 3090000:
        same(run("--config", "GDAL_SKIP=GPKG", "-op", "nearest", "o.fgb", *words).rc, 1)
    else:
        fails("--config", "CPL_DEBUG=ON", "o.fgb", *words, op=False,
              message=["--config CPL_DEBUG=ON: GDAL", "takes two words, --config CPL_DEBUG ON"])


def check_devices_stands_alone():
    r = run("--devices")
    same((r.rc, r.err), (0, ""))
    fails("--devices", "-gpu", "0", op=False, message="--devices stands alone: leave out '-gpu'")
    fails("-gpu", "0", "--devices", op=False, message="leave out '-gpu'")


def check_options_of_an_output_that_is_there_or_not():
    words = layers()
    given = ["-dsco", "VERSION=1.2", "-lco", "SPATIAL_INDEX=NO", "-doo", "LIST_ALL_TABLES=YES"]
    for how, said in (([], ["-doo"]), (["-append"], ["-dsco", "-lco"]), (["-overwrite"], ["-doo"]),
                      (["-update", "-nln", "other"], ["-dsco"]),
                      (["-append", "-unmatched_layer", "rest"], ["-dsco"])):
        r = join(*given, *how, "o.gpkg", *words)
        same([line.split()[2] for line in r.err.splitlines() if "has no effect" in line], said, str(r))


def check_reasons_of_geos():
    """The message quotes GEOS's reason, without the advice that GEOS adds."""
    path = need_data("norway.gpkg")
    r = succeeds("-op", "touches", "-validate", "o.csv", path, path)
    same(r.err.count("TopologyException: side location conflict at"), 1, str(r))
    true("This can occur" not in r.err, str(r))


def check_threads():
    words = layers()
    for given, env, said in ((["-threads", "3"], "1", "3 threads"), ([], "1", "1 thread"),
                             ([], "2", "2 threads"), (["-threads", "ALL_CPUS"], "1", None)):
        r = join("-overwrite", "o.gpkg", *words, *given, env={"GDAL_NUM_THREADS": env})
        line = r.err.splitlines()[-1]
        n = len(os.sched_getaffinity(0))
        said = said or f"{n} thread" + "s" * (n > 1)
        true(line.endswith(f", {said}"), line)
    join("-overwrite", "o.gpkg", *words, env={"GDAL_NUM_THREADS": "many"})


def check_ogr2ogr_habits():
    """Options may stand between and after the dataset names. They may be in any case,
    with one or two dashes."""
    words = layers()
    join("o.gpkg", "-MAX_Distance", "50", words[0], "--k", "2", words[1], "-Overwrite")
    true("join_rank" in Layer("o.gpkg").fields, "-k")


def check_stdin_and_streams_closed():
    words = layers()
    command = [OGRJOIN, "-op", "nearest", "o.gpkg", *words]
    rc = subprocess.call(["sh", "-c", '"$@" <&- >&- 2>&-', "sh", *command])
    same(rc, 0)
    same(len(Layer("o.gpkg").rows), 50)


def check_stdout_that_breaks():
    """If the reader of stdout has ended, or the device is full, this is an error."""
    words = layers()
    if not os.path.exists("/dev/full"):
        raise Skip("no /dev/full")
    for format_name in ("CSV", "GeoJSON", "GeoJSONSeq"):
        for dst in ("/vsistdout/", "/dev/stdout"):
            command = [OGRJOIN, "-op", "nearest", "-q", "-f", format_name, dst, *words]
            with open("/dev/full", "w", encoding="utf-8") as full:
                done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE,
                                      check=False)
            err = done.stderr.decode()
            same(done.returncode, 1, f"{format_name} {dst}: {err}")
            same(err.count("ERROR"), 1, f"{format_name} {dst}: {err}")
            if dst == "/vsistdout/":
                true("no space" in err.lower(), f"{format_name}: {err}")
    # head reads one line and ends.
    command = f"'{OGRJOIN}' -op nearest -q -f CSV /vsistdout/ {' '.join(words)}"
    done = subprocess.run(["sh", "-c", command + " | head -1"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=HANG_S, check=False)
    same(done.stdout.decode().count("\n"), 1)


if __name__ == "__main__":
    main(globals())
