import { findOperation } from '../catalog/index.ts'
import { checked, type Door, doorsOf } from './doors.ts'
import type { TestServer } from './servers.ts'

/** Calls one quick door (`/v1/ops`) with a key; answers must be what the catalog promises. */
export const callAs = (server: Pick<TestServer, 'url'>, key: string): Door['call'] => checked(doorsOf(server.url, key)[1]!).call

/** The same, for calls that must succeed: answers the body, and throws the problem. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- tests look into answers freely
export const doAs = (server: Pick<TestServer, 'url'>, key: string) => async (name: string, input?: Record<string, unknown>): Promise<any> => {
  const confirm = findOperation(name)!.confirm
  const { status, body, text } = await callAs(server, key)(name, input, confirm ? { confirm } : {})
  if (status >= 300) throw new Error(`${name}: ${text}`)
  return body
}
