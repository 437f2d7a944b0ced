import type { S3Location } from './location.ts'
import type { MediaStoreCheck } from '../../media-store.ts'

type Failure = Extract<MediaStoreCheck, { ok: false }>

type S3Error = Error & {
  code?: string
  $metadata?: { httpStatusCode?: number }
  $response?: { headers?: Record<string, string> }
}

const CREDENTIALS = 'AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY'

/** Says in the terms of `WCRM_MEDIA` why the store refused or could not be reached. Quotes no credentials. */
export const explainS3Failure = ({ bucket, endpoint, region }: S3Location, error: unknown): Failure => {
  const { name, code, $metadata, $response } = error as S3Error
  const status = $metadata?.httpStatusCode
  const where = endpoint ?? 'Amazon S3'
  const definite = (detail: string, fix: string): Failure => ({ ok: false, isDefinite: true, detail, fix })
  const perhaps = (detail: string, fix: string): Failure => ({ ok: false, isDefinite: false, detail, fix })
  if (name === 'NoSuchBucket')
    return definite(
      `There is no bucket ${bucket} at ${where}.`,
      'Create it, or correct the bucket or the endpoint in WCRM_MEDIA.',
    )
  if (status === 301 || name === 'PermanentRedirect' || name === 'AuthorizationHeaderMalformed') {
    const other = $response?.headers?.['x-amz-bucket-region']
    return definite(
      `The bucket ${bucket} is not in the region ${region ?? 'of AWS_REGION'}${other ? ` but in ${other}` : ''}.`,
      `Set region=${other ?? 'REGION'} in WCRM_MEDIA.`,
    )
  }
  if ((error as Error).message.startsWith('Region is missing'))
    return definite('No region is known.', 'Add ?region=REGION to WCRM_MEDIA, or set AWS_REGION.')
  if (name === 'CredentialsProviderError')
    return perhaps('No credentials were found.', `Set ${CREDENTIALS}, or give the machine a role.`)
  if (name === 'InvalidAccessKeyId' || name === 'SignatureDoesNotMatch')
    return perhaps(`${where} refuses the credentials (${name}).`, `Check ${CREDENTIALS}.`)
  if (name === 'RequestTimeTooSkewed')
    return perhaps(`The clocks of ${where} and this machine differ.`, "Set this machine's clock.")
  if (status === 403)
    return perhaps(
      `${where} does not allow it (${name}).`,
      `Allow s3:PutObject, s3:GetObject and s3:DeleteObject on the bucket ${bucket}.`,
    )
  return perhaps(
    `${where} cannot be reached (${code ?? status ?? name}).`,
    'Check the endpoint in WCRM_MEDIA, the network between, and that the store runs.',
  )
}
