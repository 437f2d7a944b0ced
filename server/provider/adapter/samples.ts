import { isOutcomeUnknown } from '../../kernel/open-outcomes.ts'
import { z } from 'zod'
import { Problem } from '../../kernel/problem.ts'
import { type Provider } from '../port.ts'
import { joinPath, type ProviderHttp } from './http.ts'
import { unreadableResponse } from './problems.ts'

const Session = z.object({ id: z.string() })
const Stored = z.object({ h: z.string().min(1) })
const Progress = z.object({ file_offset: z.coerce.number().int().nonnegative() })

const MAX_RESUMES = 3

/**
 * A session id is a path with a signature as its query. It becomes part of the URL unchanged, so it must not
 * lead elsewhere.
 */
const isSession = (id: string): boolean =>
  /^upload:[\w:=+/%~.-]+(\?[\w=&%+~.:-]*)?$/.test(id) && !id.includes('..')

export const createSamplesApi = (
  { request, options: { token } }: ProviderHttp,
  appId: string | undefined,
): Pick<Provider, 'uploadSample'> => ({
  uploadSample: async ({ bytes, contentType, fileName }, signal) => {
    if (!appId)
      throw new Problem(
        'service_unconfigured',
        'Template samples are uploaded to an app at the provider, and none is configured. ' +
          'Start the server with WCRM_PROVIDER_APP_ID.',
      )
    const { id: session } = await request(
      Session,
      {
        method: 'POST',
        path: joinPath(appId, 'uploads'),
        query: { file_name: fileName, file_length: String(bytes.byteLength), file_type: contentType },
      },
      signal,
    )
    if (!isSession(session)) throw unreadableResponse()
    const headers = { Authorization: `OAuth ${token}` }
    let offset = 0
    for (let resumes = 0; ; resumes++) {
      try {
        const { h: handle } = await request(
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
        // The step failed: the provider keeps the bytes that arrived, and reports how many they are.
        if (resumes >= MAX_RESUMES || signal.aborted || !isOutcomeUnknown(error as Problem)) throw error
        ;({ file_offset: offset } = await request(
          Progress,
          { method: 'GET', path: session, headers },
          signal,
        ))
        if (offset > bytes.byteLength) throw unreadableResponse()
      }
    }
  },
})
