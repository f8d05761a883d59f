"""Runs algorithms of Processing in one PyQGIS process of its own.

Each line of stdin is a job in JSON, each line of stdout its answer: ok, error,
results, said (kind, text), percents, seconds, cpu (seconds, including those of the
command), cancelled, and loaded, which is what QGIS would load: path -> output, valid,
rows, fields.

  {"run": "ogrjoin:joinbynearest", "parameters": {...}, "folder": ...,
   "cancel_after": 0.5, "env": {...}, "setting": path of the command, "task": true,
   "widgets": true (parameters that are not given get the values of the dialog)}

A parameter {"layer": path, ...} is a layer object. Further keys describe it: provider,
name, select (expression), selected (only the selected features are read), limit, subset,
crs, edit (expression of features that are deleted, but not saved), virtual (name of a
virtual field).
"""

import json
import os
import sys
import threading
import time

from qgis.core import (
    QgsApplication,
    QgsCoordinateReferenceSystem,
    QgsField,
    QgsProcessingAlgRunnerTask,
    QgsProcessingContext,
    QgsProcessingException,
    QgsProcessingFeatureSourceDefinition,
    QgsProcessingFeedback,
    QgsProject,
    QgsVectorLayer,
)
from qgis.gui import QgsGui, QgsProcessingGui, QgsProcessingParameterWidgetContext
from qgis.PyQt.QtCore import QEventLoop, QVariant


class Feedback(QgsProcessingFeedback):
    """Collects all messages and percentages of an algorithm."""

    def __init__(self):
        super().__init__(False)
        self.said = []
        self.percents = []

    def setProgress(self, percent):
        super().setProgress(percent)
        self.percents.append(percent)

    def reportError(self, text, fatalError=False):
        self.said.append(["error", text])

    def pushWarning(self, text):
        self.said.append(["warning", text])

    def pushInfo(self, text):
        self.said.append(["info", text])

    def pushCommandInfo(self, text):
        self.said.append(["command", text])


def open_layer(words):
    layer = QgsVectorLayer(
        words["layer"], words.get("name", "layer"), words.get("provider", "ogr")
    )
    if not layer.isValid():
        raise RuntimeError(f"QGIS cannot open {words['layer']}")
    if "subset" in words:
        layer.setSubsetString(words["subset"])
    if "crs" in words:
        layer.setCrs(QgsCoordinateReferenceSystem(words["crs"]))
    if "select" in words:
        layer.selectByExpression(words["select"])
    if "edit" in words:
        layer.startEditing()
        layer.selectByExpression(words["edit"])
        layer.deleteSelectedFeatures()
    if "virtual" in words:
        field = QgsField(words["virtual"], QVariant.Int)
        layer.addExpressionField("$id * 2", field)
    QgsProject.instance().addMapLayer(layer)
    if words.get("selected") or "limit" in words:
        return QgsProcessingFeatureSourceDefinition(
            layer.id(), bool(words.get("selected")), words.get("limit", -1)
        )
    return layer


def describe_loaded(context):
    loaded = {}
    for path, details in context.layersToLoadOnCompletion().items():
        layer = QgsVectorLayer(path, "loaded", "ogr")
        loaded[path] = {
            "output": details.outputName,
            "valid": layer.isValid(),
            "rows": layer.featureCount(),
            "fields": [field.name() for field in layer.fields()],
        }
    return loaded


def widget_values(algorithm, context):
    """Returns the initial values of the widgets in the algorithm's dialog."""
    wrappers = []
    for parameter in algorithm.parameterDefinitions():
        if parameter.isDestination():
            continue
        wrapper = QgsGui.processingGuiRegistry().createParameterWidgetWrapper(
            parameter, QgsProcessingGui.Standard
        )
        of_project = QgsProcessingParameterWidgetContext()
        of_project.setProject(QgsProject.instance())
        wrapper.setWidgetContext(of_project)
        wrappers.append((parameter.name(), wrapper, wrapper.createWrappedWidget(context)))
    for _, wrapper, _ in wrappers:
        wrapper.postInitialize([w for _, w, _ in wrappers])
    return {name: wrapper.parameterValue() for name, wrapper, _ in wrappers}


def run_here(algorithm, parameters, context, feedback):
    return algorithm.run(parameters, context, feedback, catchExceptions=False)


def run_as_task(algorithm, parameters, context, feedback):
    """Runs the algorithm in a thread of QGIS, as the toolbox does. Exceptions become
    messages. Returns [results, whether it succeeded]."""
    task = QgsProcessingAlgRunnerTask(algorithm, parameters, context, feedback)
    loop, outcome = QEventLoop(), []

    def on_end(is_fine, results):
        outcome.extend((results, is_fine))
        loop.quit()

    task.executed.connect(on_end)
    QgsApplication.taskManager().addTask(task)
    loop.exec_()
    return outcome


def cpu_seconds():
    return sum(os.times()[:4])


def run(job):
    context = QgsProcessingContext()
    context.setProject(QgsProject.instance())
    feedback = Feedback()
    answer = {"ok": False, "error": "", "results": {}, "loaded": {}}
    if job.get("cancel_after") is not None:
        threading.Timer(job["cancel_after"], feedback.cancel).start()
    begin, cpu = time.monotonic(), cpu_seconds()
    try:
        parameters = {
            name: open_layer(value) if isinstance(value, dict) else value
            for name, value in job["parameters"].items()
        }
        algorithm = QgsApplication.processingRegistry().createAlgorithmById(job["run"])
        if job.get("widgets"):
            parameters = {**widget_values(algorithm, context), **parameters}
        is_fit, why = algorithm.checkParameterValues(parameters, context)
        if not is_fit:
            raise QgsProcessingException("parameters: " + why)
        is_fit, why = algorithm.canExecute()
        if not is_fit:
            raise QgsProcessingException("cannot execute: " + why)
        how = run_as_task if job.get("task") else run_here
        results, is_fine = how(algorithm, parameters, context, feedback)
        answer["seconds"] = time.monotonic() - begin
        answer["cpu"] = cpu_seconds() - cpu
        answer["ok"] = is_fine
        answer["results"], answer["loaded"] = results, describe_loaded(context)
    except QgsProcessingException as why:
        answer["error"] = str(why)
        answer["seconds"] = time.monotonic() - begin
    answer["said"] = feedback.said
    answer["percents"] = feedback.percents
    answer["cancelled"] = feedback.isCanceled()
    QgsProject.instance().clear()
    return answer


def main():
    application = QgsApplication([], True)  # with widgets
    application.initQgis()
    sys.path += [
        os.path.join(application.pkgDataPath(), "python", "plugins"),
        os.environ["QGIS_PLUGINPATH"],
    ]
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # output of QGIS must not mix with the answers
    from processing.core.Processing import Processing
    from processing.core.ProcessingConfig import ProcessingConfig

    Processing.initialize()
    from ogrjoin import classFactory

    plugin = classFactory(None)
    plugin.initProcessing()
    ours = dict(os.environ)
    for line in sys.stdin:
        job = json.loads(line)
        os.chdir(job["folder"])
        os.environ.update(job.get("env", {}))
        ProcessingConfig.setSettingValue("OGRJOIN_COMMAND", job.get("setting", ""))
        print(json.dumps(run(job)), file=answers, flush=True)
        os.environ.update(ours)
        os.chdir("/")
    plugin.unload()
    application.exitQgis()


if __name__ == "__main__":
    main()
