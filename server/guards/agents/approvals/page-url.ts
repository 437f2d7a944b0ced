export const APPROVAL_PAGES = '/approvals'

const LOOPBACK = ['localhost', '127.0.0.1', '[::1]']

/**
 * Returns the address of the page on which a person decides; null where a login code would be sent in the clear,
 * or the public URL has a path.
 */
export const toApprovalUrl = (publicUrl: string, approvalId: string): string | null => {
  const url = URL.parse(publicUrl)
  if (!url || url.pathname !== '/') return null
  const isSafe = url.protocol === 'https:' || (url.protocol === 'http:' && LOOPBACK.includes(url.hostname))
  return isSafe ? `${url.origin}${APPROVAL_PAGES}/${approvalId}` : null
}
