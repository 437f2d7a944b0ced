import assert from 'node:assert/strict'
import { before, it } from 'node:test'
import { catalog, listRoutes } from '../../catalog/index.ts'
import { everyDatabase } from '../doors.ts'
import { makeWorkspace } from '../servers.ts'
import { createRawClient, type RawClient } from './raw-request.ts'

/** The path with its first letter after `/v1/` encoded, which only h3's router decodes. */
const encodeLetter = (path: string): string =>
  path.replace(/^\/v1\/(\w)/, (_, letter: string) => `/v1/%${letter.charCodeAt(0).toString(16)}`)

everyDatabase('Direct routes', (server) => {
  let client: RawClient
  before(async () => {
    client = createRawClient(server().url, (await makeWorkspace(server())).owner.key)
  })

  /** What is the same in each response to the same request. */
  const fetchComparable = async (path: string, method: string) => {
    const { status, text, headers } = await client.raw(path, { method })
    const { code, detail, errors, ...rest } = JSON.parse(text) as Record<string, unknown>
    return { status, type: headers['content-type'], code, detail, errors, fields: Object.keys(rest) }
  }

  it('every route is served the same way by h3, which decodes paths', async () => {
    const paths = catalog.flatMap((op) =>
      listRoutes(op).map(({ method, path }) => [method, path.replaceAll(/\{\w+\}/g, '987654321')] as const),
    )
    assert.ok(paths.length > 50)
    for (const [method, path] of [...paths, ['POST', '/v1/ops/crm_list_tags'], ['POST', '/v1/ops/nowhere']])
      assert.deepEqual(
        await fetchComparable(path!, method!),
        await fetchComparable(encodeLetter(path!), method!),
        `${method} ${path}`,
      )
  })

  it('a value in a path may have the name of a route', async () => {
    for (const path of ['/v1/contacts/me', '/v1/contacts/contacts', '/v1/templates/ops'])
      assert.deepEqual(
        await fetchComparable(path, 'GET'),
        await fetchComparable(encodeLetter(path), 'GET'),
        path,
      )
  })
})
