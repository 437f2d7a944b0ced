import { z } from 'zod'
import { Problem } from '../../core/problem.ts'
import { outcomeUnknown, type Provider } from '../port.ts'
import { at, type Http } from './http.ts'
import { unreadable } from './problems.ts'

const Session = z.object({ id: z.string() })
const Stored = z.object({ h: z.string().min(1) })
const Progress = z.object({ file_offset: z.coerce.number().int().nonnegative() })

const MOST_RESUMES = 3

/**
 * A session's id is a path with a signature for a query; it goes into the address as it is, so it must not
 * lead elsewhere.
 */
const isSession = (id: string): boolean =>
  /^upload:[\w:=+/%~.-]+(\?[\w=&%+~.:-]*)?$/.test(id) && !id.includes('..')

export const samples = (
  { ask, options: { token } }: Http,
  appId: string | undefined,
): Pick<Provider, 'uploadSample'> => ({
  uploadSample: async ({ bytes, contentType, fileName }, signal) => {
    if (!appId)
      throw new Problem(
        'service_unconfigured',
        'Samples of templates are uploaded to an app of the provider, and none is named. Start the server with WCRM_PROVIDER_APP_ID.',
      )
    const { id: session } = await ask(
      Session,
      {
        method: 'POST',
        path: at(appId, 'uploads'),
        query: { file_name: fileName, file_length: String(bytes.byteLength), file_type: contentType },
      },
      signal,
    )
    if (!isSession(session)) throw unreadable()
    const headers = { Authorization: `OAuth ${token}` }
    let offset = 0
    for (let resumes = 0; ; resumes++) {
      try {
        const { h: handle } = await ask(
          Stored,
          {
            method: 'POST',
            path: session,
            body: Uint8Array.from(bytes.subarray(offset)),
            headers: { ...headers, file_offset: String(offset), 'Content-Type': 'application/octet-stream' },
          },
          signal,
        )
        return { handle }
      } catch (error) {
        // The step broke: what arrived of it is kept, and the provider says how much that is.
        if (resumes >= MOST_RESUMES || signal.aborted || !outcomeUnknown(error as Problem)) throw error
        ;({ file_offset: offset } = await ask(Progress, { method: 'GET', path: session, headers }, signal))
        if (offset > bytes.byteLength) throw unreadable()
      }
    }
  },
})
