import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readPgliteVersion, readTemplateVersion } from '../../storage/embedded/template.ts'

test('The template of embedded databases is of the installed PGlite', () => {
  assert.equal(readTemplateVersion(), readPgliteVersion(), 'run `npx node tools/embedded-template/run.ts`')
})
