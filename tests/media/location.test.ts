import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { pino } from 'pino'
import { readConfig } from '../../server/config.ts'
import { mediaLocationsOf, parseMediaLocation } from '../../server/domains/media/location.ts'
import { openServerStore } from '../../server/domains/media/open-store.ts'
import { parseRange } from '../../server/domains/media/range.ts'
import { createMetrics } from '../../server/metrics.ts'
import { startS3 } from './s3.ts'

describe('WCRM_MEDIA', () => {
  it('is a folder, or a bucket with a prefix, a region and an endpoint', () => {
    assert.deepEqual(parseMediaLocation('/var/lib/wcrm/media'), {
      kind: 'folder',
      folder: '/var/lib/wcrm/media',
    })
    assert.deepEqual(parseMediaLocation('s3://crm-files/wcrm/acme/?region=eu-central-1'), {
      kind: 's3',
      bucket: 'crm-files',
      prefix: 'wcrm/acme',
      region: 'eu-central-1',
      endpoint: undefined,
      addressing: 'virtual',
    })
    const own = parseMediaLocation('s3://crm-files?endpoint=http://minio:9000')
    assert.deepEqual(own, {
      kind: 's3',
      bucket: 'crm-files',
      prefix: '',
      region: undefined,
      endpoint: 'http://minio:9000',
      addressing: 'path',
    })
  })

  it('that is misspelt is refused with what was meant, and shows no credentials', () => {
    for (const [value, message] of [
      ['s3://bucket/x?regoin=eu', 'WCRM_MEDIA: "regoin" is not a parameter. Did you mean region?'],
      ['s3://bucket?region=a&region=b', 'WCRM_MEDIA: region is given twice'],
      ['s3://Bucket_1/x', /^WCRM_MEDIA: the bucket must have/],
      ['s3://bucket/a%2f..', /^WCRM_MEDIA: the prefix may have/],
      ['s3://bucket?addressing=dns', 'WCRM_MEDIA: addressing must be path or virtual'],
      ['s3://bucket?endpoint=minio:9000', /^WCRM_MEDIA: endpoint must be an http or https URL/],
      ['s3://AKIA1:hunter2@bucket', /^WCRM_MEDIA: must not hold credentials. .*AWS_ACCESS_KEY_ID/],
      ['s3://bucket?endpoint=https://a:hunter2@b', /^WCRM_MEDIA: endpoint must not hold credentials/],
      ['gs://bucket/x', 'WCRM_MEDIA: must be a folder, or s3://bucket/prefix, not "gs://…"'],
    ] as const) {
      const error = (): unknown => readConfig({}, { WCRM_MEDIA: value })
      assert.throws(error, { message })
      assert.throws(error, (thrown: Error) => !thrown.message.includes('hunter2'))
    }
  })

  it('whose bucket does not exist stops the start; one that cannot be reached is a warning', async () => {
    const s3 = await startS3()
    let logged = ''
    const log = pino({ level: 'warn' }, { write: (line: string) => void (logged += line) })
    const open = (media: string) =>
      openServerStore(mediaLocationsOf({ media, dataDir: '' }), { log, metrics: createMetrics() })
    try {
      await assert.rejects(open(s3.location('x').replace('//media', '//medai')), {
        message:
          `WCRM_MEDIA: There is no bucket medai at ${s3.endpoint}. ` +
          'Create it, or correct the bucket or the endpoint in WCRM_MEDIA.',
      })
      s3.fault = 403
      await open(s3.location('x'))
      assert.match(logged, /does not allow it \(AccessDenied\)/)
      assert.match(logged, /s3:PutObject, s3:GetObject and s3:DeleteObject/)
    } finally {
      await s3.close()
    }
  })
})

describe('Range', () => {
  it('names bytes of the file', () => {
    for (const [header, expected] of [
      ['bytes=0-0', { start: 0, end: 0 }],
      ['bytes=5-', { start: 5, end: 9 }],
      ['bytes=5-100', { start: 5, end: 9 }],
      ['bytes=-3', { start: 7, end: 9 }],
      ['bytes=-30', { start: 0, end: 9 }],
      ['bytes=10-', 'unsatisfiable'],
      ['bytes=-0', 'unsatisfiable'],
      ['bytes=3-2', undefined],
      ['bytes=a-', undefined],
      ['bytes=0-1,3-4', undefined],
    ] as const)
      assert.deepEqual(parseRange(header, 10), expected, header)
    assert.equal(parseRange('bytes=0-', 0), 'unsatisfiable')
  })
})
