package page

import (
	"strings"
	"testing"
)

// pathsOfPages are paths that are requested: the pages of real sites and applications, as they are linked.
const pathsOfPages = `
/
/how-to-delete-a-branch
/add-a-swap-file
/verify-gpg
/wiki/Delete
/src/crypto/verify.go

# articles and slugs
/blog/2024/05/how-we-removed-jquery
/2024/05/12/update/
/2023/11/run
/news/2024/03/14/order
/questions/2003505/how-do-i-delete-a-git-branch-locally-and-remotely
/questions/927358/how-do-i-undo-the-most-recent-local-commits-in-git
/community/tutorials/how-to-add-swap-space-on-ubuntu-22-04
/community/tutorials/how-to-reset-your-mysql-password
/@ann/why-you-should-unsubscribe-from-everything-5f2b9c81a3d4
/vote/how-to-register
/like/father-like-son
/t/cannot-log-out-of-my-account/12345
/articles/destroy-all-monsters-at-fifty
/posts/clear-thinking-about-caches
/blog/checkout-page-design-best-practices
/blog/abandoned-cart-emails-that-work
/golf-cart-rentals
/basket-weaving-for-beginners
/recipes/bread-basket-dip
/stories/the-day-we-purged-our-cdn
/learn/when-to-restart-a-service
/guides/verify-your-domain-name
/help/delete-your-account
/help/how-do-i-cancel-my-subscription-early
/faq/why-was-my-account-suspended
/lifehacks/mute-annoying-people
/music/like-a-rolling-stone
/film/kill-bill-vol-1
/books/to-kill-a-mockingbird
/cocktails/shake-it-add-ice
/resume
/play/chess
/hr/process-to-approve
/docs/k8s/deploy
/format-a4/copy
/news-20240512/update
/what-was-new-in-the-summer-of-our-lives/update
/help/cannot-log-out

# documentation
/docs/git-add
/docs/git-reset
/docs/git-checkout
/docs/git-rm.html
/docs/install
/docs/get-started/install
/docs/install/linux
/docs/deploy/production
/docs/build
/docs/checkout/quickstart
/docs/payments/accept-a-payment
/docs/verify/api.html
/docs/update
/docs/import/csv
/docs/16/sql-delete.html
/docs/16/sql-truncate.html
/docs/reference/generated/kubectl_delete/
/docs/reference/commandline/container_run/
/docs/reference/commandline/docker-compose-restart
/manual/en/function.session-destroy.php
/manual/en/mysqli.rollback.php
/manual/en/function.unlink.php
/en-US/docs/Web/API/EventTarget/removeEventListener
/en-US/docs/Web/API/Node/removeChild
/en-US/docs/Web/HTTP/Methods/DELETE
/library/unittest.mock.html
/3/library/shutil.html
/api/java/util/Vector.removeAll.html
/javase/8/docs/api/java/sql/Connection.rollback.html
/std/collections/struct.Remove.html
/man8/useradd.8.html
/man1/kill.1.html
/commands/delete/index.html
/cli/commands/destroy.html
/terraform/cli/v1.9.x/commands/plan
/reference/verify/intro.html
/add-ins/excel
/add-ons
/remove-background
/add-to
/reset-css
/features/order
/address
/additional
/payload
/payments
/voters-guide
/votes
/likes-and-dislikes
/followers
/cartoons
/cartography/maps
/removers
/deleted-scenes
/confirmed-speakers
/cancellation-policy

/docs/update-profile
/docs/create-account
/docs/remove-list
/docs/delete-plugin
/mail/delete-all-messages-from-all-threads

# wikis
/wiki/Vote
/wiki/Purge
/wiki/Log_out
/wiki/Like_(film)
/wiki/Shopping_cart
/wiki/Undo
/wiki/Help:Delete
/wiki/Talk:Reset
/wiki/C%2B%2B_delete_operator
/wiki/Special:RecentChanges
/wiki/Special:Log
/w/index.php?title=Delete
/Reset
/title/Remove_All_Doubt

# source code
/project/src/delete.go
/project/tree/verify.rs
/project/blob/main/cmd/remove.c
/project/blob/main/internal/cart/cart.py
/project/src/branch/main/delete/delete_test.go
/project/blob/5f2b9c81a3d45f2b9c81a3d45f2b9c81a3d45f2b/reset.ts
/project/raw/main/logout.rb
/src/sync/runtime2_lockrank.go
/project/commit/5f2b9c81a3d4
/project/pull/77/commits
/project/releases/tag/v1.2.0
/images/cart.svg
/icons/delete.png
/files/remove.zip
/logout.html

# categories, products, things with IDs
/post/7
/share/7
/star/7
/archive/2024/05
/t/verify-gpg/123
/t/like-button/123
/deleted/7
/components/toggle
/components/switch
/book/7
/books/7
/block/840000
/watch/7
/pin/1234
/order
/buy
/store/order
/collections/baskets
/category/carts-and-trolleys
/product/5120/remove-hair-spray
/movies/77/watch
/hotels/7/book
/v2/run
/windows11/install
/topics/votes
/addons/7
/c/home-garden/add-on-items
/search?q=how+to+delete+a+branch
/list?page=7
/list?tag=Delete
/products?order=asc
/items?sort=price
`

// pathsOfActions are paths that are not requested, each after the word that [Action] returns.
const pathsOfActions = `
destroy /items/7/destroy
vote /vote/7
ban /admin/users/7/ban
run /cron/run
delete /deleteAll
remove /removeItem
add /addtocart
pay /pay
reset /reset
rollback /rollback
purge /purge
like /like

# Rails and Devise
logout /logout
signout /users/sign_out
destroy /posts/hello-world/comments/12/destroy
destroy /items/7/destroy.html
destroy /items/7/destroy.json
publish /posts/7/publish
archive /projects/7/archive
unsubscribe /unsubscribe/eyJfcmFpbHMiOnsi
cancel /orders/A1B2C3D4/cancel
follow /users/ann/follow
follow /follow/ann
follow /users/follow/ann

# Django: admin, allauth, registration
delete /admin/blog/post/7/delete/
logout /admin/logout/
logout /accounts/logout/
reset /accounts/password/reset/confirm
activate /activate/MQ/c1x2y3-0a1b2c3d4e/
confirm /accounts/confirm-email/MQ:1r5f2b9/
delete /snippets/5/snippet-delete/delete/

# Laravel, CakePHP, CodeIgniter, Yii, Symfony, ThinkPHP
clear /clear-cache
verify /email/verify/7/5f2b9c81a3d45f2b
delete /articles/delete/my-first-article
delete /index.php/user/delete/7
delete /post/delete?id=7
delete /admin/user/delete/id/7.html
cart /cart/remove/7.html
cart /shop/cart/remove/7.html
delete /user/delete-account
delete /delete-account
restore /trash/7/restore
cart /cart/7/update
update /users/7/update

# WordPress and WooCommerce
logout /my-account/customer-logout/
logout /wp-login.php?action=logout
trash /edit.php?post=7&action=trash
activate /wp-admin/plugins.php?action=activate&plugin=akismet
wpcron /wp-cron.php
install /wp-admin/install.php
cart /cart/
cart /de/cart/
checkout /checkout/
checkout /checkout/order-received/77/
add /shop/?add-to-cart=77
remove /shop/?remove_item=5f2b9c81
undo /shop/?undo_item=5f2b9c81
add /?wc-ajax=add_to_cart
cancel /shop/?cancel_order=true&order=wc

# Magento, PrestaShop, OpenCart, Shopify
checkout /checkout/cart/add/uenc/aHR0cHM6/product/77/
checkout /checkout/cart/delete/id/7/
add /catalog/product_compare/add/product/77/
remove /wishlist/index/remove/item/7/
logout /customer/account/logout/
checkout /index.php?route=checkout/cart/add
remove /index.php?route=account/wishlist&remove=77
cart /cart/add?id=77
add /en/cart/add?id=77
cart /cart/77:0
cart /cart/clear
basket /basket

# MediaWiki, DokuWiki, MoinMoin, Gollum
delete /w/index.php?title=Foo&action=delete
purge /w/index.php?title=Foo&action=purge
rollback /w/index.php?title=Foo&action=rollback&from=Ann
logout /wiki/Special:UserLogout
delete /wiki/Special:Delete/Foo
logout /doku.php?id=start&do=logout
revert /doku.php?id=start&do=revert
delete /Foo?action=DeletePage
delete /delete/Foo

# phpBB, vBulletin, MyBB, SMF, Discourse, Reddit
logout /ucp.php?mode=logout&sid=5f2b9c81
delete /posting.php?mode=delete&f=1&p=2
logout /login.php?do=logout
logout /member.php?action=logout&logoutkey=5f2b9c81
markasread /index.php?action=markasread
delete /session/ann/delete
undo /t/7/undo
like /posts/7/like
vote /post/t3_5f2b9c81/vote
upvote /post/7/upvote
unsubscribe /email/unsubscribe/5f2b9c81a3d4

# Drupal, Joomla, TYPO3, Moodle

delete /node/7/delete
cancel /user/7/cancel
run /admin/reports/status/run-cron/cron/run
update /update.php
flush /admin/flush
logout /index.php?option=com_users&task=user.logout
logout /login/logout.php?sesskey=5f2b9c81
delete /course/delete.php?id=7
delete /mod/forum/post.php?delete=7

# Gitea, GitLab, GitHub, Jenkins, Grafana
delete /ann/project/_delete/main/README
logout /user/logout
star /ann/project/7/star
delete /ann/project/wiki/Home?action=_delete
delete /ann/project/issues/7/delete
lock /ann/project/issues/7/lock
merge /ann/project/pulls/7/merge
run /ann/project/actions/jobs/7/run
cancel /ann/project/-/pipelines/7/cancel
build /job/project/7/build
stop /job/project/7/stop
logout /grafana/logout
delete /api/items/7:delete

# ASP.NET, Java
logoff /Account/LogOff
logout /Account/Logout
delete /Account/Delete
delete /Products/Delete/5
remove /ShoppingCart/RemoveFromCart/5
add /ShoppingCart/AddToCart/5
delete /product/delete.aspx?id=7
logout /logout.jsp
delete /deleteUser.do?id=7
delete /user!delete.action
logout /doLogout
add /servlet/addItem
create /createOrder
update /updateCart.cfm

# home-made ones
checkout /checkout/onepage/success/
verify /auth/verify/email/again
run /shop/cron/run
delete /index.php/User/Delete
follow /follow/index.php
logout /user_log_out
close /tickets/12345678-1234-1234-1234-123456789012/close
close /tickets/abcdefghijklmnopqrstuvwxyzabcdefgh/close
delete /deletePlugin
remove /remove_list
delete /delete-addresses
delete /delete-categories
lock /posts/t3/lock
delete /en/Products/Delete/5
delete /delete_student/7
delete /delete-student/7
delete /deletestudent/7
remove /item-remove/7/
delete /students/student-delete/7
toggle /toggleComplete/7
toggle /toggle/7
complete /complete/7
update /tasks/update/7
logout /handlelogout
logout /logout_user
purchase /order/purchase
delete /delete.php?id=7
delete /delete_7
delete /item-delete
delete /entry/5f2b9c81-0a1b-4c2d-9e3f-5f2b9c81a3d4/delete
remove /removefromcart
add /add_to_cart.cgi
confirm /newsletter/confirm/5f2b9c81a3d4
unsubscribe /newsletter/unsubscribe
optout /opt-out/5f2b9c81
approve /admin/comments/7/approve
reject /requests/7/reject
cancel /subscription/cancel
send /admin/mail/send
reboot /system/reboot
shutdown /shutdown
restart /service/web/restart
close /tickets/1950/close
close /tickets/77/close
toggle /devices/17/toggle
import /admin/import
sync /api/sync
run /jobs/run
empty /trash/empty
revoke /tokens/5f2b9c81/revoke
markallread /notifications/mark-all-read
logout /log-out
delete /?delete=7
delete /deleteallposts
add /addto/7
delete /blog_post_delete/7
delete /Users/7/Roles/Delete
cancel /orders/7/cancel/done
close /2024/12345/close
activate /auth/activate/NzM4OTI1MA==/done
close /tickets?Action=close
close /tickets/abc1def/close
`

// listOf returns the lines of a table that are neither empty nor comments.
func listOf(table string) (lines []string) {
	for line := range strings.Lines(table) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return lines
}

func TestAction(t *testing.T) {
	for _, path := range listOf(pathsOfPages) {
		if word := Action(path); word != "" {
			t.Errorf("%s: got %q, want a page", path, word)
		}
	}
	for _, line := range listOf(pathsOfActions) {
		want, path, _ := strings.Cut(line, " ")
		if got := Action(path); got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
}
