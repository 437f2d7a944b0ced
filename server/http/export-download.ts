import { insertAuditRow } from '../../storage/access/audit.ts'
import { findExport, listParts } from '../../storage/work/exports.ts'
import type { App } from '../app.ts'
import { Problem } from '../kernel/problem.ts'
import { countFailure } from '../kernel/throttle.ts'
import { isNoneMatch } from './etag.ts'
import { toContentDisposition } from '../domains/media/media.ts'
import { parseRange } from '../domains/media/range.ts'
import { exportPartKey } from '../media-store.ts'
import { readParts } from '../domains/exports/parts.ts'
import { type OpenedExportUrl, openExportUrl } from '../domains/exports/urls.ts'
import { toExportContentType, toExportFileName } from '../domains/exports/view.ts'

/** A download is a read that is recorded, each time, as that of who was given the URL. */
const recordDownload = async (
  app: App,
  opened: OpenedExportUrl,
  range: string | null,
  requestId: string,
): Promise<void> => {
  if (!app.config.audit) return
  await insertAuditRow(app.db, opened.workspaceId, {
    at: app.now(),
    staff_id: opened.staffId,
    key_id: opened.keyId,
    door: 'rest',
    client: null,
    operation: 'crm_get_export',
    target: { type: 'export', id: opened.exportId },
    outcome: 'done',
    code: null,
    dry_run: false,
    confirmed: false,
    changes: { downloaded: range ?? 'whole' },
    request_id: requestId,
  })
}

const gone = (detail: string, reason: 'export_url_expired' | 'export_gone'): Problem =>
  new Problem('not_found', detail, { reason })

type Download = {
  address: string | undefined
  headers: Headers
  /** The headers alone are wanted: nothing is downloaded. */
  isHead: boolean
  requestId: string
}

/** Returns what the header `Range` asks of a file: of one that is as the client has it, if the client says so. */
const readRange = ({ headers, isHead }: Download, size: number, etag: string | undefined) => {
  const header = headers.get('range')
  const condition = headers.get('if-range')
  if (header === null || isHead || (condition !== null && condition !== etag)) return undefined
  return parseRange(header, size)
}

/**
 * Serves the file of a sealed URL, or what the header `Range` asks of it. Throws 404 when the URL is invalid or
 * expired, or the file is deleted, and 429 when the client sent too many invalid ones.
 */
export const serveExport = async (app: App, token: string, request: Download): Promise<Response> => {
  const { address, headers, isHead, requestId } = request
  const opened = openExportUrl(app.mediaSealer, token, app.now())
  if (!opened) countFailure(app, address, 'media_url')
  if (!opened || opened.hasExpired)
    throw gone('This URL of an export has expired. Call crm_get_export for a new one.', 'export_url_expired')
  const { workspaceId, exportId } = opened
  const found = await findExport(app.db, workspaceId, exportId)
  if (!app.media || found?.state !== 'done')
    throw gone('The file of this export is deleted. Make a new export.', 'export_gone')
  const size = Number(found.size)
  const etag = found.sha256 === null ? undefined : `"${found.sha256}"`
  const common = { 'Request-Id': requestId, ...(etag ? { ETag: etag } : {}) }
  if (etag && isNoneMatch(headers.get('if-none-match'), etag))
    return new Response(null, { status: 304, headers: common })
  const range = readRange(request, size, etag)
  if (range === 'unsatisfiable')
    return new Response(null, { status: 416, headers: { ...common, 'Content-Range': `bytes */${size}` } })
  const parts = await listParts(app.db, workspaceId, exportId)
  // After a restore there may be the rows alone.
  if (!parts[0] || !(await app.media.find(exportPartKey(workspaceId, parts[0].id))))
    throw gone('The file is not in the store of this server. Make a new export.', 'export_gone')
  if (!isHead) await recordDownload(app, opened, range ? headers.get('range') : null, requestId)
  const length = range ? range.end - range.start + 1 : size
  const content = isHead ? null : ReadableStream.from(readParts(app.media, workspaceId, parts, range))
  return new Response(content, {
    status: range ? 206 : 200,
    headers: {
      ...common,
      'Content-Length': String(length),
      ...(range ? { 'Content-Range': `bytes ${range.start}-${range.end}/${size}` } : {}),
      'Accept-Ranges': 'bytes',
      'Content-Type': toExportContentType(found),
      'Content-Disposition': toContentDisposition(toExportFileName(found)),
      'X-Content-Type-Options': 'nosniff',
      'Content-Security-Policy': "sandbox; default-src 'none'",
      'Cache-Control': 'no-store',
      'Cross-Origin-Resource-Policy': 'same-origin',
      'Referrer-Policy': 'no-referrer',
    },
  })
}
