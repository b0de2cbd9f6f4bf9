-- The best of the reader's scored items since the last execution. Items of a
-- first import have no score. An item done in the very microsecond of the last
-- execution may or may not be in its report.
INSERT INTO report_item (report_id, position, item_id)
SELECT ?1, row_number() OVER (ORDER BY score DESC, done_at DESC, id DESC), id
  FROM (SELECT i.id, i.score, i.done_at
          FROM briefing b
          JOIN source s ON s.reader_id = b.reader_id
          JOIN news_item i ON i.source_id = s.id
         WHERE b.id = ?2 AND i.status = 'DONE' AND i.score IS NOT NULL
           AND i.done_at >= coalesce(b.last_executed_at, 0)
           AND NOT EXISTS (SELECT 1 FROM report_item e JOIN report p ON p.id = e.report_id
                            WHERE e.item_id = i.id AND p.briefing_id = b.id)
         ORDER BY i.score DESC, i.done_at DESC, i.id DESC
         LIMIT ?3)
