import { FastResponse } from 'srvx/node'
import { loadServerEncoding } from '../../storage/client/health.ts'
import { waitAtMost } from '../../storage/client/wait-at-most.ts'
import type { App } from '../app.ts'
import { isDiskFull } from '../kernel/disk-full.ts'
import { version } from '../version.ts'

/** A load balancer asks again soon, and waits for about two seconds. */
const READINESS_DEADLINE_MS = 1_500

/** Still ready: taken out of service, it could not be read either. */
const READ_ONLY = {
  status: 'ready',
  reason: 'disk_full',
  detail: 'the disk of the database is full: changes are refused, reads go on. Free some space on it',
}

const jsonResponse = (status: number, value: unknown): Response =>
  new FastResponse(JSON.stringify(value), { status, headers: { 'Content-Type': 'application/json' } })

/** The process answers. */
export const serveHealth = (): Response => jsonResponse(200, { status: 'ok', version })

/** 200 when requests can be answered, else 503 with the reason in `detail`. */
export const serveReadiness = async (app: App): Promise<Response> => {
  if (app.isStopping) return jsonResponse(503, { status: 'unready', detail: 'the server is stopping' })
  try {
    let encoding: string | undefined
    const loaded = loadServerEncoding(app.db).then((loadedEncoding) => {
      encoding = loadedEncoding
    })
    if (!(await waitAtMost(READINESS_DEADLINE_MS, loaded)))
      return jsonResponse(503, { status: 'unready', detail: 'the database does not respond' })
    if (encoding !== 'UTF8')
      return jsonResponse(503, {
        status: 'unready',
        detail: `the database is encoded in ${encoding}; create it with encoding UTF8`,
      })
    if (app.secrets.isOutdated)
      return jsonResponse(503, {
        status: 'unready',
        detail: 'the other servers went on to another secret; restart this one with their WCRM_SECRET',
      })
    if (app.siblings && !app.siblings.areReady())
      return jsonResponse(503, { status: 'unready', detail: 'not all processes of this server are ready' })
    return jsonResponse(200, isDiskFull(app) ? READ_ONLY : { status: 'ready' })
  } catch {
    return jsonResponse(503, { status: 'unready', detail: 'the database cannot be reached' })
  }
}
