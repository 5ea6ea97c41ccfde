"""Tables that many questions are put to."""

from pyspark.sql import DataFrame

from klamm.pipeline.tables import Tables


class Kept(Tables):
    """Each is made once, and what is asked of it is planned without how it was made: of small captures most
    of the time goes into planning.
    """

    def _kept(self, table: DataFrame) -> DataFrame:
        return table.localCheckpoint(eager=False)
