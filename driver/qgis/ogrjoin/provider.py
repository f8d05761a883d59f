"""The provider: its algorithms and its one setting."""

from qgis.core import QgsProcessingProvider
from qgis.PyQt.QtGui import QIcon

from .command import SETTING
from .icons import icon_path
from .join_by_location import JoinByLocation
from .join_by_location_summary import JoinByLocationSummary
from .join_by_nearest import JoinByNearest
from .join_within_distance import JoinWithinDistance
from .save_live_layer import SaveLiveLayer
from .validate_join import ValidateJoin

try:  # not there when the plugin "processing" is off, as qgis_process allows
    from processing.core.ProcessingConfig import ProcessingConfig, Setting
except ImportError:
    ProcessingConfig = None

ALGORITHMS = (
    JoinByNearest,
    JoinByLocation,
    JoinByLocationSummary,
    JoinWithinDistance,
    ValidateJoin,
    SaveLiveLayer,
)


class OgrjoinProvider(QgsProcessingProvider):
    def id(self):
        return "ogrjoin"

    def name(self):
        return "ogrjoin"

    def longName(self):
        return "ogrjoin (spatial joins)"

    def icon(self):
        return QIcon(icon_path("ogrjoin"))

    def svgIconPath(self):
        return icon_path("ogrjoin")

    def supportsNonFileBasedOutput(self):
        return False

    def load(self):
        if ProcessingConfig is not None:
            ProcessingConfig.settingIcons[self.name()] = self.icon()
            ProcessingConfig.addSetting(
                Setting(
                    self.name(),
                    SETTING,
                    "The command ogrjoin (empty: the one in the PATH)",
                    "",
                    valuetype=Setting.FILE,
                )
            )
            ProcessingConfig.readSettings()
        self.refreshAlgorithms()
        return True

    def unload(self):
        if ProcessingConfig is not None:
            ProcessingConfig.removeSetting(SETTING)

    def loadAlgorithms(self):
        for algorithm in ALGORITHMS:
            self.addAlgorithm(algorithm())
