import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  findManifestProblems,
  findPartProblems,
  isAllowed,
  listParts,
  readManifest,
} from '../../scripts/supply-chain.ts'

test('every package that is installed may be shipped, and needs no script to be installed', () => {
  const parts = listParts()
  assert.ok(parts.some(({ name }) => name === 'kysely') && !parts.some(({ name }) => name === 'typescript'))
  assert.deepEqual(findPartProblems(parts), [])
})

test('a package without a licence, under another one, or with an install script is named', () => {
  const part = { path: 'node_modules/a', name: 'a', version: '1.0.0', license: 'MIT', script: false }
  assert.match(findPartProblems([{ ...part, license: undefined }]).join(), /^a@1\.0\.0 names no licence$/)
  assert.match(
    findPartProblems([{ ...part, license: 'GPL-3.0-only' }]).join(),
    /^a@1\.0\.0 is under GPL-3\.0/,
  )
  assert.match(findPartProblems([{ ...part, script: true }]).join(), /^a@1\.0\.0 runs a script/)
})

test('of alternative licences one must be allowed, of joint ones all', () => {
  assert.equal(isAllowed('(BSD-3-Clause OR GPL-2.0)'), true)
  assert.equal(isAllowed('MIT AND GPL-2.0'), false)
  assert.equal(isAllowed('MIT AND ISC'), true)
})

test('both packages can be published with provenance, and pin what they install', () => {
  for (const folder of ['.', 'packages/server'])
    assert.deepEqual(findManifestProblems(readManifest(folder)), [], folder)
  const { repository: _, ...without } = readManifest('.')
  assert.deepEqual(findManifestProblems({ ...without, dependencies: { zod: '^4.0.0' } }), [
    'wcrm: repository.url',
    'wcrm: zod is not pinned',
  ])
})
